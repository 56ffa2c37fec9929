#include "engine/failure/failure_detector.h"

#include <utility>

#include "base/format.h"

namespace sluice::engine {

void FailureDetector::look() {
  group_.receive_status();
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (peer != group_.rank()) gone_[static_cast<std::size_t>(peer)] = now(peer);
  }
}

// Asked in this order: who gives up and then leaves is not taken for a cause.
FailureDetector::Gone FailureDetector::now(Rank peer) const {
  const Gone before = gone_[static_cast<std::size_t>(peer)];
  if (before == Gone::GaveUp) return before;
  const bool has_died = before == Gone::Dead || !group_.death_of(peer).empty();
  if (has_died) group_.receive_status();  // its last words may have come since
  if (group_.board(peer).failed.load(std::memory_order_seq_cst) != 0) return Gone::GaveUp;
  return has_died ? Gone::Dead : Gone::No;
}

std::optional<Blame> FailureDetector::loss(const RunningCollective& running, bool moves) const {
  Rank gave_up = kOwn;
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    const Gone gone = gone_[static_cast<std::size_t>(peer)];
    if (gone == Gone::No || !running.needs(peer)) continue;
    if (gone == Gone::Dead) return dead(peer);
    if (moves && met_another_ahead(peer)) continue;
    gave_up = peer;
  }
  if (gave_up == kOwn) return std::nullopt;
  return blamed_by(gave_up);
}

Blame FailureDetector::standstill(const RunningCollective& running) const {
  const auto is = [&](Rank peer, Gone gone) {
    return gone_[static_cast<std::size_t>(peer)] == gone;
  };
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (is(peer, Gone::Dead) && running.needs(peer)) return dead(peer);
  }
  if (is_cut_off()) {
    return {group_.rank(), "no rank of any other host is heard: is this host's link down?"};
  }
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (peer == group_.rank()) continue;
    const std::string stopped = group_.stall_of(peer);
    if (!stopped.empty()) return {peer, base::format("rank {} is stopped ({})", peer, stopped)};
  }
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (is(peer, Gone::GaveUp)) return blamed_by(peer);
  }
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (is(peer, Gone::Dead)) return dead(peer);
  }
  return furthest_behind(running);
}

// Several other nodes fall silent at once: then it is this one that is gone.
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

Blame FailureDetector::dead(Rank rank) const {
  return {rank, base::format("rank {} is lost ({})", rank, group_.death_of(rank))};
}

Blame FailureDetector::blamed_by(Rank rank) const {
  const Rank culprit = group_.board(rank).blamed.load(std::memory_order_relaxed) - 1;
  if (culprit == kOwn || culprit == rank) return {rank, base::format("rank {} gave up", rank)};
  if (ran_ahead(rank, culprit))
    return {rank, base::format("rank {} is in a later collective", rank), true};
  if (culprit == group_.rank()) {
    return {culprit, base::format("rank {} gave up because of this rank", rank)};
  }
  if (now(culprit) == Gone::Dead) return dead(culprit);
  const std::string stopped = group_.stall_of(culprit);
  return {culprit, stopped.empty()
                       ? base::format("rank {} gave up because of rank {}", rank, culprit)
                       : base::format("rank {} is stopped ({})", culprit, stopped)};
}

// Whether that rank gave up because another calls something else, both in a later collective than
// this rank's.
bool FailureDetector::met_another_ahead(Rank rank) const {
  const std::uint64_t own = group_.own_board().entered.load(std::memory_order_acquire);
  const transport::StatusBoard& board = group_.board(rank);
  return board.failed.load(std::memory_order_relaxed) == transport::kMismatched &&
         board.entered.load(std::memory_order_acquire) > own &&
         board.blamed_in.load(std::memory_order_relaxed) > own;
}

// Whether that rank, which found that another calls something else, has itself gone past the
// collective in which this one still needs it, and is the odd one: the other had not gone so far,
// or more ranks call what the other calls.
bool FailureDetector::ran_ahead(Rank rank, Rank of) const {
  const auto entered = [&](Rank whose) {
    return group_.board(whose).entered.load(std::memory_order_acquire);
  };
  const auto signature = [&](Rank whose) {
    return group_.board(whose).signature.load(std::memory_order_relaxed);
  };
  const std::uint64_t own = entered(group_.rank());
  if (group_.board(rank).failed.load(std::memory_order_relaxed) != transport::kMismatched ||
      entered(rank) <= own)
    return false;
  if (!met_another_ahead(rank)) return true;
  int with_rank = 0;
  int with_other = 0;
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    if (entered(peer) != entered(rank)) continue;
    with_rank += signature(peer) == signature(rank) ? 1 : 0;
    with_other += signature(peer) == signature(of) ? 1 : 0;
  }
  return with_other > with_rank;
}

Blame FailureDetector::furthest_behind(const RunningCollective& running) const {
  Rank behind = kOwn;
  std::pair<std::uint64_t, int> least;
  for (Rank peer = 0; peer < group_.size(); ++peer) {
    const transport::StatusBoard& board = group_.board(peer);
    if (peer == group_.rank() || board.waits_for.load(std::memory_order_relaxed) != 0) continue;
    const std::pair<std::uint64_t, int> place{board.entered.load(std::memory_order_relaxed),
                                              board.step.load(std::memory_order_relaxed)};
    if (behind == kOwn || place < least) {
      behind = peer;
      least = place;
    }
  }
  if (behind == kOwn) behind = running.waits_for();  // they all wait: it is at least near
  if (behind == kOwn) return {kOwn, "nobody is known to be behind"};
  return {behind, base::format("rank {} last reported collective #{}", behind,
                               group_.board(behind).entered.load(std::memory_order_relaxed))};
}

}  // namespace sluice::engine
