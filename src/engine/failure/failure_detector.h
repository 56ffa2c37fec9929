// failure_detector.h - finds the rank to blame when a collective cannot go on.
//
// A rank that died, or left without giving up first, is the culprit. A rank that gave up (poisoned
// its communicator) has written its culprit to its status board, so all survivors blame the same
// rank. On a mismatch the culprit is the rank that ran ahead to a later collective without this
// rank. When there is no failure but nothing moves, the culprit is a stopped process or a rank that
// sends no status updates, else the rank furthest behind that waits for no other.
// Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/collective.h"
#include "transport/group.h"

namespace sluice::engine {

struct Blame {
  Rank culprit = kOwn;
  std::string how;          // "rank 2 is lost (process 17 is gone)"
  bool mismatched = false;  // the culprit called a different collective than this rank
  bool lost = false;        // the culprit has died or left, as this rank or another one has seen
};

class FailureDetector {
 public:
  explicit FailureDetector(const transport::Group& group) : group_{group}, states_(size()) {}

  // Reads every peer's state. Call it before advance(): data that a peer sent before it ended is
  // then still received.
  void update();
  // Whether a peer neither has died nor has given up, at present.
  bool is_alive(Rank peer) const { return present_state(peer) == PeerState::Alive; }

  // The lost peer, as of the last update(), that the collective needs. While the collective
  // `moves`, a peer that gave up in a later collective may be innocent: its data is in flight.
  std::optional<Blame> cause_of_loss(const RunningCollective& running, bool moves) const;
  // The cause when nothing has moved for the deadline; there always is one.
  Blame cause_of_stall(const RunningCollective& running) const;

 private:
  enum class PeerState : std::uint8_t { Alive, Dead, GaveUp };

  std::size_t size() const { return static_cast<std::size_t>(group_.size()); }
  PeerState state(Rank peer) const { return states_[static_cast<std::size_t>(peer)]; }
  PeerState present_state(Rank peer) const;
  bool is_cut_off() const;
  Blame lost(Rank rank) const;
  Blame blamed_by(Rank rank) const;
  bool mismatched_ahead(Rank rank) const;
  bool ran_ahead(Rank rank, Rank other) const;
  Blame furthest_behind(const RunningCollective& running) const;

  const transport::Group& group_;
  std::vector<PeerState> states_;  // by rank
};

}  // namespace sluice::engine
