// failure_detector.h - who is to blame when a collective does not go on.
//
// A rank that died or left without having given up itself is a cause; a rank that gave up says on
// its board whom it blamed, so all survivors name the same one; of two that do not call the same,
// it is the one that went on to a later collective without this rank. When only time has passed, it
// is a stopped process or one that has fallen silent, else the rank furthest behind that waits for
// nobody.
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
  bool mismatched = false;  // it calls another collective than this rank
};

class FailureDetector {
 public:
  explicit FailureDetector(const transport::Group& group) : group_{group}, gone_(size()) {}

  // Looks who has gone. What a rank gave before it left is seen by who advances after this.
  void look();

  // The cause of a loss that the collective cannot survive, as of the last look(). While it moves,
  // who gave up in a later collective may owe it nothing: what it sent is on its way.
  std::optional<Blame> loss(const RunningCollective& running, bool moves) const;
  // The cause of a standstill; there always is one.
  Blame standstill(const RunningCollective& running) const;

 private:
  enum class Gone : std::uint8_t { No, Dead, GaveUp };

  std::size_t size() const { return static_cast<std::size_t>(group_.size()); }
  Gone now(Rank peer) const;
  bool is_cut_off() const;
  Blame dead(Rank rank) const;
  Blame blamed_by(Rank rank) const;
  bool met_another_ahead(Rank rank) const;
  bool ran_ahead(Rank rank, Rank of) const;
  Blame furthest_behind(const RunningCollective& running) const;

  const transport::Group& group_;
  std::vector<Gone> gone_;  // by rank
};

}  // namespace sluice::engine
