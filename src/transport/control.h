// control.h - the shared memory through which the ranks of a group on one node talk.
//
// One control block a group, the same bytes for all its ranks: threads of one process or processes.
// A channel carries messages from one rank to another, in order, at most kWindow outstanding; a
// message says where the bytes lie, not the bytes themselves. A slot holds a whole small
// contribution, header and payload together, in two parities: who has every peer's slot of
// operation k knows that every peer is done reading its slot of operation k-2, so no exit barrier
// is needed.
//
// Every field is written by one rank only (a channel's `taken` by its receiver, all else by its
// sender or owner), except bells. Zeroed memory is a valid empty block.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "sluice/schedule.h"
#include "transport/memory/memory.h"
#include "transport/network.h"
#include "transport/wait.h"

namespace sluice::transport {

// Processes could not share an atomic that needs a lock.
static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

inline constexpr std::size_t kLine = 64;  // bytes of a cache line
inline constexpr std::uint64_t kWindow = 8;
inline constexpr std::size_t kSlotBytes = 4096;  // the longest contribution that goes into a slot

enum class Delivery : std::uint32_t {
  InPlace,  // they lie in the sender's buffer itself, which may be written as well until taken
  Staged,   // they lie in a copy
  Pushed,   // they have been written where the receive wants them: nothing is left to do
};

struct ChannelMessage {
  std::uint64_t signature = 0;  // of the collective; both sides must mean the same one
  MemoryLocation location;
  std::uint64_t bytes = 0;
  Delivery delivery = Delivery::InPlace;
};

struct Channel {
  alignas(kLine) std::atomic<std::uint64_t> posted;
  std::atomic<std::uint32_t> withdrawn;  // the sender gave up: what its messages name may change
  std::array<ChannelMessage, kWindow> messages;
  alignas(kLine) std::atomic<std::uint64_t> taken;
};

struct Slot {
  alignas(kLine) std::atomic<std::uint64_t> number;  // of the operation it belongs to
  std::uint64_t signature;
  std::array<std::byte, kSlotBytes> payload;
};

// What a rank tells of itself; the others read it to say who is to blame. Of a rank on another node
// they have a copy, made of its notes (network.h).
struct StatusBoard {
  alignas(kLine) std::atomic<std::uint64_t> entered;  // collectives begun
  std::atomic<std::uint64_t> kind;                    // of the present one: what was asked for
  std::atomic<std::uint64_t> count;                   // and of how many elements
  std::atomic<std::uint64_t> signature;               // of these three: else they are half written
  std::atomic<std::int32_t> step;                     // reached in it
  std::atomic<std::int32_t> waits_for;                // rank + 1; 0 for nobody
  std::atomic<std::int32_t> blamed;                   // rank + 1 that it failed because of
  std::atomic<std::uint32_t> failed;                  // its communicator is poisoned: how, below
  std::atomic<std::uint64_t> blamed_in;               // the collective that one was seen to call

  StatusUpdate read() const {
    constexpr auto kPlain = std::memory_order_relaxed;
    return {entered.load(kPlain),   kind.load(kPlain),   count.load(kPlain),
            signature.load(kPlain), step.load(kPlain),   waits_for.load(kPlain),
            blamed.load(kPlain),    failed.load(kPlain), blamed_in.load(kPlain)};
  }
  void write(const StatusUpdate& note) {
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
};

// Board::failed
constexpr std::uint32_t kFailed = 1;
constexpr std::uint32_t kMismatched = 2;  // ranks do not call the same collective

struct RankControl {  // all that is one rank's
  alignas(kLine) Doorbell bell;
  StatusBoard board;
  std::array<Slot, 2> slots;
};

class ControlBlock {
 public:
  ControlBlock(void* memory, int ranks) : memory_{static_cast<std::byte*>(memory)}, ranks_{ranks} {}
  static std::size_t bytes(int ranks) {
    const auto n = static_cast<std::size_t>(ranks);
    return n * sizeof(RankControl) + n * n * sizeof(Channel);
  }

  RankControl& rank_control(Rank rank) const {
    return reinterpret_cast<RankControl*>(memory_)[rank];  // NOLINT: typed view of shared memory
  }
  Channel& channel(Rank from, Rank to) const {
    auto* const channels = memory_ + static_cast<std::size_t>(ranks_) * sizeof(RankControl);
    return reinterpret_cast<Channel*>(channels)[from * ranks_ + to];  // NOLINT: as above
  }

 private:
  std::byte* memory_;
  int ranks_;
};

}  // namespace sluice::transport
