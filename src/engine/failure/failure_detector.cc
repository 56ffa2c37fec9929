#include "engine/failure/failure_detector.h"

#include <utility>

#include "base/format.h"

namespace sluice::engine {

void FailureDetector::update() {
  group_.receive_status();
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (peer != group_.rank()) states_[static_cast<std::size_t>(peer)] = present_state(peer);
  }
}

// The death is read before the status board, so a peer that gave up and then left is not taken for
// dead.
FailureDetector::PeerState FailureDetector::present_state(Rank peer) const {
  const PeerState before = state(peer);
  if (before == PeerState::GaveUp) return before;
  const bool has_died = before == PeerState::Dead || !group_.death_of(peer).empty();
  if (has_died) group_.receive_status();  // its last report may have arrived since
  if (group_.board(peer).failed.load(std::memory_order_seq_cst) != 0) return PeerState::GaveUp;
  return has_died ? PeerState::Dead : PeerState::Alive;
}

std::optional<Blame> FailureDetector::cause_of_loss(const RunningCollective& running,
                                                    bool moves) const {
  Rank gave_up = kOwn;
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (state(peer) == PeerState::Alive || !running.needs(peer)) continue;
    if (state(peer) == PeerState::Dead) return lost(peer);
    if (moves && mismatched_ahead(peer)) continue;
    gave_up = peer;
  }
  if (gave_up == kOwn) return std::nullopt;
  return blamed_by(gave_up);
}

Blame FailureDetector::cause_of_stall(const RunningCollective& running) const {
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (!running.needs(peer)) continue;
    group_.watch(peer);
    if (present_state(peer) == PeerState::Dead) return lost(peer);
  }
  if (is_cut_off()) {
    return {group_.rank(), "no status update comes from any other host: is this host's link down?"};
  }
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (peer == group_.rank()) continue;
    const std::string stopped = group_.stall_of(peer);
    if (!stopped.empty()) return {peer, base::format("rank {} is stopped ({})", peer, stopped)};
  }
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (state(peer) == PeerState::GaveUp) return blamed_by(peer);
  }
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (state(peer) == PeerState::Dead) return lost(peer);
  }
  return furthest_behind(running);
}

// When several other nodes are silent, and no other node is not, this node has lost its link.
bool FailureDetector::is_cut_off() const {
  int silent_node = -1;
  bool several = false;
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (group_.is_local(peer)) continue;
    if (group_.stall_of(peer).empty()) return false;
    const int node = group_.location(peer).node;
    several = several || (silent_node != -1 && silent_node != node);
    silent_node = node;
  }
  return several;
}

Blame FailureDetector::lost(Rank rank) const {
  return {.culprit = rank,
          .how = base::format("rank {} is lost ({})", rank, group_.death_of(rank)),
          .lost = true};
}

Blame FailureDetector::blamed_by(Rank rank) const {
  const Rank culprit = group_.board(rank).blamed.load(std::memory_order_relaxed) - 1;
  if (culprit == kOwn || culprit == rank) return {rank, base::format("rank {} gave up", rank)};
  if (ran_ahead(rank, culprit))
    return {rank, base::format("rank {} is in a later collective", rank), true};
  if (culprit == group_.rank()) {
    return {culprit, base::format("rank {} gave up because of this rank", rank)};
  }
  group_.watch(culprit);
  if (present_state(culprit) == PeerState::Dead) return lost(culprit);
  const std::string stopped = group_.stall_of(culprit);
  return {.culprit = culprit,
          .how = stopped.empty() ? base::format("rank {} gave up because of rank {}", rank, culprit)
                                 : base::format("rank {} is stopped ({})", culprit, stopped),
          .lost = group_.board(rank).failed.load(std::memory_order_relaxed) == transport::kLost};
}

// Whether that rank gave up because of a mismatch with another rank, when both were in a later
// collective than this rank.
bool FailureDetector::mismatched_ahead(Rank rank) const {
  const std::uint64_t own = group_.own_board().entered.load(std::memory_order_acquire);
  const transport::StatusBoard& board = group_.board(rank);
  return board.failed.load(std::memory_order_relaxed) == transport::kMismatched &&
         board.entered.load(std::memory_order_acquire) > own &&
         board.blamed_in.load(std::memory_order_relaxed) > own;
}

// `rank` found a mismatch with `other`. Returns whether `rank` itself is to blame: it has gone past
// the collective in which this rank still needs it, and either `other` had not gone so far, or more
// ranks make the call of `other`.
bool FailureDetector::ran_ahead(Rank rank, Rank other) const {
  const auto entered = [&](Rank peer) {
    return group_.board(peer).entered.load(std::memory_order_acquire);
  };
  const auto signature = [&](Rank peer) {
    return group_.board(peer).signature.load(std::memory_order_relaxed);
  };
  const std::uint64_t own = entered(group_.rank());
  if (group_.board(rank).failed.load(std::memory_order_relaxed) != transport::kMismatched ||
      entered(rank) <= own)
    return false;
  if (!mismatched_ahead(rank)) return true;
  int with_rank = 0;
  int with_other = 0;
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (entered(peer) != entered(rank)) continue;
    with_rank += signature(peer) == signature(rank) ? 1 : 0;
    with_other += signature(peer) == signature(other) ? 1 : 0;
  }
  return with_other > with_rank;
}

Blame FailureDetector::furthest_behind(const RunningCollective& running) const {
  Rank behind = kOwn;
  std::pair<std::uint64_t, int> least;
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    const transport::StatusBoard& board = group_.board(peer);
    if (peer == group_.rank() || board.waits_for.load(std::memory_order_relaxed) != 0) continue;
    const std::pair<std::uint64_t, int> position{board.entered.load(std::memory_order_relaxed),
                                                 board.step.load(std::memory_order_relaxed)};
    if (behind == kOwn || position < least) {
      behind = peer;
      least = position;
    }
  }
  if (behind == kOwn) behind = running.waits_for();  // all ranks wait; this is the next best guess
  if (behind == kOwn) return {kOwn, "no rank is known to be behind"};
  return {behind, base::format("rank {} last reported collective #{}", behind,
                               group_.board(behind).entered.load(std::memory_order_relaxed))};
}

}  // namespace sluice::engine
