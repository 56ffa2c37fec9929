// control.h - the shared memory through which the ranks of a group on one node communicate.
//
// A group has one control block on each node; all its ranks there map the same bytes, whether they
// are threads of one process or processes. It holds three kinds of records:
//  - A channel carries messages from one rank to another, in order, with at most kWindow
//    outstanding. A message names the location of its bytes; it does not contain them.
//  - A slot holds one small contribution, header and payload together. Each rank has two, used in
//    turn. When a rank has received every peer's slot of operation k, every peer has read this
//    rank's slot of operation k-2, so operations need no exit barrier.
//  - A status board shows the progress of a rank.
//
// Every field has one writer, except doorbells. In a channel the receiver writes `taken` and the
// sender writes the rest. Each rank writes its own slots and status board. A block of zeros is a
// valid empty block.
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

inline constexpr std::size_t kCacheLineBytes = 64;
inline constexpr std::uint64_t kWindow = 8;
inline constexpr std::size_t kSlotBytes = 4096;  // the longest contribution that fits in a slot

enum class Delivery : std::uint32_t {
  InPlace,  // the bytes are in the sender's own buffer, which may also change until `taken`
  Staged,   // the bytes are in a staged copy
  Pushed,   // the sender has written the bytes into the receiver's buffer
};

struct ChannelMessage {
  std::uint64_t signature = 0;  // the collective's; must be equal on both sides
  MemoryLocation location;
  std::uint64_t bytes = 0;
  Delivery delivery = Delivery::InPlace;
};

struct Channel {
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> posted;
  std::atomic<std::uint32_t> withdrawn;  // the sender failed: the bytes of its messages may change
  std::array<ChannelMessage, kWindow> messages;
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> taken;
};

struct Slot {
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> number;  // the operation's, from 1
  std::uint64_t signature;
  std::array<std::byte, kSlotBytes> payload;
};

// The step that rank 0 reports while it proves the schedule of its collective.
inline constexpr std::int32_t kProvingStep = -1;

// The progress that a rank reports; the failure detector finds the culprit with it. The board of a
// rank on another node is a local copy, written from that rank's status updates (network.h).
struct StatusBoard {
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> entered;  // collectives begun
  std::atomic<std::uint64_t> kind;                              // of the present collective
  std::atomic<std::uint64_t> count;      // elements of the present collective
  std::atomic<std::uint64_t> signature;  // of entered, kind, count: detects a torn read
  std::atomic<std::int32_t> step;        // reached in the present collective; kProvingStep
  std::atomic<std::int32_t> waits_for;   // rank + 1; 0: it waits for no rank
  std::atomic<std::int32_t> blamed;      // rank + 1 of the culprit of this rank's failure
  std::atomic<std::uint32_t> failed;     // below, once the communicator is poisoned
  std::atomic<std::uint64_t> blamed_in;  // the collective that the culprit was seen to call

  StatusUpdate read() const {
    constexpr auto kPlain = std::memory_order_relaxed;
    return {entered.load(kPlain),   kind.load(kPlain),   count.load(kPlain),
            signature.load(kPlain), step.load(kPlain),   waits_for.load(kPlain),
            blamed.load(kPlain),    failed.load(kPlain), blamed_in.load(kPlain)};
  }
  void write(const StatusUpdate& update) {
    constexpr auto kPlain = std::memory_order_relaxed;
    entered.store(update.entered, kPlain);
    kind.store(update.kind, kPlain);
    count.store(update.count, kPlain);
    signature.store(update.signature, kPlain);
    step.store(update.step, kPlain);
    waits_for.store(update.waits_for, kPlain);
    blamed.store(update.blamed, kPlain);
    blamed_in.store(update.blamed_in, kPlain);
    failed.store(update.failed, std::memory_order_seq_cst);
  }
};

// Values of StatusBoard::failed.
constexpr std::uint32_t kFailed = 1;
constexpr std::uint32_t kMismatched = 2;  // the ranks do not call the same collective
constexpr std::uint32_t kLost = 3;        // the culprit has died or left

struct RankControl {
  alignas(kCacheLineBytes) Doorbell doorbell;
  StatusBoard board;
  std::array<Slot, 2> slots;
};

// A typed view of the memory: one RankControl for each rank, then one Channel for each pair.
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
