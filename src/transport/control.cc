#include "transport/control.h"

namespace sluice::transport {

static_assert(std::atomic<std::uint64_t>::is_always_lock_free);  // or processes could not share it

std::size_t ControlBlock::bytes(int ranks) {
  const auto n = static_cast<std::size_t>(ranks);
  return n * sizeof(RankControl) + n * n * sizeof(Channel);
}

RankControl& ControlBlock::desk(Rank rank) const {
  return reinterpret_cast<RankControl*>(memory_)[rank];  // NOLINT: typed view of shared memory
}

Channel& ControlBlock::channel(Rank from, Rank to) const {
  auto* const channels = memory_ + static_cast<std::size_t>(ranks_) * sizeof(RankControl);
  return reinterpret_cast<Channel*>(channels)[from * ranks_ + to];  // NOLINT: as above
}

StatusNote StatusBoard::note() const {
  constexpr auto kPlain = std::memory_order_relaxed;
  return {entered.load(kPlain),   kind.load(kPlain),   count.load(kPlain),
          signature.load(kPlain), step.load(kPlain),   waits_for.load(kPlain),
          blamed.load(kPlain),    failed.load(kPlain), blamed_in.load(kPlain)};
}

void StatusBoard::write(const StatusNote& note) {
  constexpr auto kPlain = std::memory_order_relaxed;
  entered.store(note.entered, kPlain);
  kind.store(note.kind, kPlain);
  count.store(note.count, kPlain);
  signature.store(note.signature, kPlain);
  step.store(note.step, kPlain);
  waits_for.store(note.waits_for, kPlain);
  blamed.store(note.blamed, kPlain);
  blamed_in.store(note.blamed_in, kPlain);
  failed.store(note.failed, std::memory_order_seq_cst);
}

}  // namespace sluice::transport
