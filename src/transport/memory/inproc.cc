// inproc.cc - shared memory for ranks that are threads of one process.
#include <sys/eventfd.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <mutex>

#include "base/file.h"
#include "base/format.h"
#include "transport/group.h"

namespace sluice::transport {
namespace {

// The memory of all ranks. A block that is not released, for example a control block, stays until
// the last rank has left, because a peer may still read it.
class InprocHeap {
 public:
  explicit InprocHeap(int ranks) : gone_(static_cast<std::size_t>(ranks)) {
    for (int i = 0; i < ranks; ++i)
      wake_descriptors_.emplace_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }
  ~InprocHeap() {
    for (const MemoryBlock& block : live_) unmap(block);
  }
  InprocHeap(const InprocHeap&) = delete;
  InprocHeap& operator=(const InprocHeap&) = delete;

  int size() const { return static_cast<int>(gone_.size()); }
  std::atomic<bool>& gone(Rank rank) { return gone_[static_cast<std::size_t>(rank)]; }
  int wake_descriptor(Rank rank) const {
    return wake_descriptors_[static_cast<std::size_t>(rank)].number();
  }

  Result<MemoryBlock> allocate(std::size_t bytes) {
    void* const data =
        mmap(nullptr, mapped(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      return Status{Code::NoMemory, base::format("cannot allocate {} bytes of memory", bytes)};
    }
    // The id of a block is its address, which is the same for all ranks.
    const MemoryBlock block{reinterpret_cast<std::uintptr_t>(data), static_cast<std::byte*>(data),
                            bytes};
    const std::lock_guard lock{mutex_};
    live_.push_back(block);
    return block;
  }

  void release(const MemoryBlock& block) {
    const std::lock_guard lock{mutex_};
    std::erase_if(live_, [&](const MemoryBlock& each) { return each.id == block.id; });
    unmap(block);
  }

 private:
  static std::size_t mapped(std::size_t bytes) { return std::max(bytes, std::size_t{1}); }
  static void unmap(const MemoryBlock& block) { munmap(block.data, mapped(block.bytes)); }

  std::vector<std::atomic<bool>> gone_;
  std::vector<base::Fd> wake_descriptors_;
  std::mutex mutex_;
  std::vector<MemoryBlock> live_;
};

class InprocMemory final : public Memory {
 public:
  InprocMemory(Rank rank, std::shared_ptr<InprocHeap> heap) : rank_{rank}, heap_{std::move(heap)} {}
  ~InprocMemory() override { heap_->gone(rank_) = true; }
  InprocMemory(const InprocMemory&) = delete;
  InprocMemory& operator=(const InprocMemory&) = delete;

  Rank rank() const override { return rank_; }
  int size() const override { return heap_->size(); }
  Result<MemoryBlock> allocate(std::size_t bytes) override { return heap_->allocate(bytes); }
  void release(const MemoryBlock& block) override { heap_->release(block); }
  Result<std::byte*> address(Rank /*peer*/, MemoryLocation location) override {
    const std::uint64_t address = location.block + location.offset;
    return reinterpret_cast<std::byte*>(address);  // NOLINT: see InprocHeap
  }
  int wake_descriptor() const override { return heap_->wake_descriptor(rank_); }
  void wake(Rank peer) override { eventfd_write(heap_->wake_descriptor(peer), 1); }
  std::string death_of(Rank peer) override { return heap_->gone(peer) ? "it has left" : ""; }
  std::string stall_of(Rank /*peer*/) override { return ""; }

 private:
  Rank rank_;
  std::shared_ptr<InprocHeap> heap_;
};

}  // namespace

std::shared_ptr<Memory> make_single_rank_memory() {
  return std::make_shared<InprocMemory>(0, std::make_shared<InprocHeap>(1));
}

std::vector<std::unique_ptr<Group>> make_inproc_groups(int ranks) {
  const auto heap = std::make_shared<InprocHeap>(ranks);
  std::byte* const control = heap->allocate(ControlBlock::bytes(ranks)).value().data;
  std::vector<std::unique_ptr<Group>> groups;
  for (Rank rank = 0; rank < ranks; ++rank) {
    groups.push_back(std::make_unique<Group>(std::make_shared<InprocMemory>(rank, heap), control));
  }
  return groups;
}

}  // namespace sluice::transport
