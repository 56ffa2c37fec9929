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

// What the ranks share. Segments that nobody released, control blocks among them, stay until the
// last rank has gone: a peer may still be reading them.
class Arena {
 public:
  explicit Arena(int ranks) : gone_(static_cast<std::size_t>(ranks)) {
    for (int i = 0; i < ranks; ++i) wakers_.emplace_back(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  }
  ~Arena() {
    for (const MemoryBlock& segment : live_) unmap(segment);
  }
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  int size() const { return static_cast<int>(gone_.size()); }
  std::atomic<bool>& gone(Rank rank) { return gone_[static_cast<std::size_t>(rank)]; }
  int waker(Rank rank) const { return wakers_[static_cast<std::size_t>(rank)].number(); }

  Result<MemoryBlock> allocate(std::size_t bytes) {
    void* const data =
        mmap(nullptr, mapped(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) {
      return Status{Code::NoMemory, base::format("{} bytes of memory are not to be had", bytes)};
    }
    // A segment's id is its address: all ranks see the same addresses.
    const MemoryBlock segment{reinterpret_cast<std::uintptr_t>(data), static_cast<std::byte*>(data),
                              bytes};
    const std::lock_guard lock{mutex_};
    live_.push_back(segment);
    return segment;
  }

  void release(const MemoryBlock& segment) {
    const std::lock_guard lock{mutex_};
    std::erase_if(live_, [&](const MemoryBlock& each) { return each.id == segment.id; });
    unmap(segment);
  }

 private:
  static std::size_t mapped(std::size_t bytes) { return std::max(bytes, std::size_t{1}); }
  static void unmap(const MemoryBlock& segment) { munmap(segment.data, mapped(segment.bytes)); }

  std::vector<std::atomic<bool>> gone_;
  std::vector<base::Fd> wakers_;
  std::mutex mutex_;
  std::vector<MemoryBlock> live_;
};

class InprocMemory final : public Memory {
 public:
  InprocMemory(Rank rank, std::shared_ptr<Arena> arena) : rank_{rank}, arena_{std::move(arena)} {}
  ~InprocMemory() override { arena_->gone(rank_) = true; }
  InprocMemory(const InprocMemory&) = delete;
  InprocMemory& operator=(const InprocMemory&) = delete;

  Rank rank() const override { return rank_; }
  int size() const override { return arena_->size(); }
  Result<MemoryBlock> allocate(std::size_t bytes) override { return arena_->allocate(bytes); }
  void release(const MemoryBlock& segment) override { arena_->release(segment); }
  Result<std::byte*> address(Rank /*peer*/, MemoryLocation location) override {
    return reinterpret_cast<std::byte*>(location.block + location.offset);  // NOLINT: see Arena
  }
  int wake_descriptor() const override { return arena_->waker(rank_); }
  void wake(Rank peer) override { eventfd_write(arena_->waker(peer), 1); }
  std::string death_of(Rank peer) override { return arena_->gone(peer) ? "it has left" : ""; }
  std::string stall_of(Rank /*peer*/) override { return ""; }

 private:
  Rank rank_;
  std::shared_ptr<Arena> arena_;
};

}  // namespace

std::shared_ptr<Memory> make_single_rank_memory() {
  return std::make_shared<InprocMemory>(0, std::make_shared<Arena>(1));
}

std::vector<std::unique_ptr<Group>> make_inproc_groups(int ranks) {
  const auto arena = std::make_shared<Arena>(ranks);
  std::byte* const control = arena->allocate(ControlBlock::bytes(ranks)).value().data;
  std::vector<std::unique_ptr<Group>> groups;
  for (Rank rank = 0; rank < ranks; ++rank) {
    groups.push_back(std::make_unique<Group>(std::make_shared<InprocMemory>(rank, arena), control));
  }
  return groups;
}

}  // namespace sluice::transport
