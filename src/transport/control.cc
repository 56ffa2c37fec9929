#include "transport/control.h"

namespace sluice {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // or processes could not share it

std::size_t ControlBlock::bytes(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return n * sizeof(RankBoard) + n * n * sizeof(Channel);
}

RankBoard& ControlBlock::board(Rank rank) const {
  return reinterpret_cast<RankBoard*>(memory_)[rank];  // NOLINT: typed view of shared memory
}

Channel& ControlBlock::channel(Rank from, Rank to) const {
  auto* const channels = memory_ + static_cast<std::size_t>(ranks_) * sizeof(RankBoard);
  return reinterpret_cast<Channel*>(channels)[from * ranks_ + to];  // NOLINT: as above
}

}  // namespace sluice
