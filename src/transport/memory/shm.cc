// shm.cc - shared memory for ranks that are processes of one machine.
//
// The processes join through node_join.h and have their arenas (arena.h) in one file. The id of a
// memory block contains its pages in the arena, so a new block needs no announcement: a peer maps
// it when a message first names it. The pages of a released block are free at once; a peer unmaps
// them when a new block has the same pages. The memory has no name in the file system, so a crash
// leaves no files.
//
// The end of a rank is in the table of the node (NodeMember::presence), where every peer sees it
// without a system call. A rank that leaves writes it there itself. When a process is killed, the
// ranks that watch it write it: rank 0 watches all connections, and every rank watches the
// processes of the next few ranks and of those that it waits for. So the number of descriptors and
// system calls of a rank does not grow with the number of ranks.
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "transport/group.h"
#include "transport/memory/arena.h"
#include "transport/memory/node_join.h"
#include "transport/memory/process_status.h"

namespace sluice::transport {
namespace {

class ShmMemory final : public Memory {
 public:
  ShmMemory(const ShmOptions& options, NodeMembership node);
  ~ShmMemory() override;
  ShmMemory(const ShmMemory&) = delete;
  ShmMemory& operator=(const ShmMemory&) = delete;

  Rank rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  Result<MemoryBlock> allocate(std::size_t bytes) override;
  void release(const MemoryBlock& block) override;
  Result<std::byte*> address(Rank peer, MemoryLocation location) override;
  int wake_descriptor() const override { return node_.wake.number(); }
  void wake(Rank peer) override { send_wake(node_.wake.number(), node_.table[peer]); }
  std::string death_of(Rank peer) override;
  void watch(Rank peer) override;
  std::string stall_of(Rank peer) override;

 private:
  struct Mapping {
    PageRange range;
    std::byte* data = nullptr;
  };
  using Mappings = std::map<std::uint32_t, Mapping>;  // by first page; they do not overlap
  struct Peer {
    Mappings mappings;  // at the rank's own entry: all that it has allocated
    base::Fd process;   // a pidfd, if this rank watches it
    bool watched = false;
  };

  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }
  Result<std::byte*> map(Rank rank, PageRange range);
  void watch_connections();
  void watch_process(Rank peer);
  void poll_watched();

  const Rank rank_;
  const pid_t process_ = getpid();
  NodeMembership node_;
  std::mutex mutex_;  // guards the members below
  Arena arena_;
  std::vector<Peer> peers_;         // by rank
  std::vector<pollfd> polled_;      // connections and processes
  std::vector<Rank> polled_ranks_;  // whose they are
  Clock::time_point next_poll_;
};

ShmMemory::ShmMemory(const ShmOptions& options, NodeMembership node)
    : rank_{options.rank},
      node_{std::move(node)},
      arena_{node_.file.number(), rank_, rank_ == 0 ? node_.first.count : 0},
      peers_(index(options.ranks)) {
  peers_.front().mappings.emplace(node_.first.first, Mapping{node_.first, node_.data});
  watch_connections();
  constexpr int kNext = 16;
  for (int i = 1; i <= std::min(kNext, options.ranks - 1); ++i)
    watch_process((rank_ + i) % options.ranks);
}

ShmMemory::~ShmMemory() {
  // A forked child must not end its parent's membership.
  if (getpid() == process_)
    node_.table[rank_].presence.store(Presence::Left, std::memory_order_release);
  for (const Peer& peer : peers_) {
    for (const auto& [first, mapping] : peer.mappings) unmap_range(mapping.data, mapping.range);
  }
}

Result<MemoryBlock> ShmMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock{mutex_};
  const auto range = arena_.take(bytes);
  if (!range.ok()) return range.status();
  const auto data = map(rank_, range.value());
  if (!data.ok()) {
    arena_.give_back(range.value());
    return data.status();
  }
  return MemoryBlock{range.value().id(), data.value(), bytes};
}

void ShmMemory::release(const MemoryBlock& block) {
  const std::lock_guard lock{mutex_};
  const PageRange range = PageRange::from_id(block.id);
  Mappings& own = peers_[index(rank_)].mappings;
  const auto found = own.find(range.first);
  if (found == own.end() || found->second.range.count != range.count) return;
  unmap_range(found->second.data, range);
  own.erase(found);
  arena_.give_back(range);
}

Result<std::byte*> ShmMemory::address(Rank rank, MemoryLocation location) {
  const std::lock_guard lock{mutex_};
  const Mappings& mappings = peers_[index(rank)].mappings;
  const PageRange range = PageRange::from_id(location.block);
  if (location.offset >= range.bytes()) {
    return Status{Code::InvalidArgument,
                  base::format("rank {} names byte {} of a memory block of {} bytes", rank,
                               location.offset, range.bytes())};
  }
  const auto found = mappings.find(range.first);
  if (found != mappings.end() && found->second.range.count == range.count) {
    return found->second.data + location.offset;
  }
  if (rank == rank_ || !range.fits_an_arena()) {
    return Status{Code::InvalidArgument,
                  base::format("rank {} has no memory block {:x}", rank, location.block)};
  }
  const auto data = map(rank, range);
  if (!data.ok()) return data.status();
  return data.value() + location.offset;
}

Result<std::byte*> ShmMemory::map(Rank rank, PageRange range) {
  Mappings& mappings = peers_[index(rank)].mappings;
  // The peer has released all other blocks with these pages.
  auto old = mappings.upper_bound(range.first);
  if (old != mappings.begin() && std::prev(old)->second.range.end() > range.first) --old;
  while (old != mappings.end() && old->first < range.end()) {
    unmap_range(old->second.data, old->second.range);
    old = mappings.erase(old);
  }
  std::byte* const data = map_range(node_.file.number(), rank, range);
  if (data == nullptr) {
    return Status{Code::NoMemory, base::format("cannot map {} bytes of rank {}'s shared memory: {}",
                                               range.bytes(), rank, std::strerror(errno))};
  }
  mappings.emplace(range.first, Mapping{range, data});
  return data;
}

// A connection shows the end of a process even if that has another process namespace.
void ShmMemory::watch_connections() {
  for (std::size_t i = 0; i < node_.connections.size(); ++i) {
    if (!node_.connections[i].open()) continue;
    polled_.push_back({node_.connections[i].number(), POLLIN, 0});
    polled_ranks_.push_back(rank_ == 0 ? static_cast<Rank>(i) : 0);
  }
}

void ShmMemory::watch_process(Rank peer) {
  Peer& watched = peers_[index(peer)];
  if (peer == rank_ || std::exchange(watched.watched, true)) return;
  watched.process = process_of(node_.table[peer]);
  if (!watched.process.open()) return;
  polled_.push_back({watched.process.number(), POLLIN, 0});
  polled_ranks_.push_back(peer);
}

void ShmMemory::watch(Rank peer) {
  const std::lock_guard lock{mutex_};
  watch_process(peer);
}

void ShmMemory::poll_watched() {
  constexpr auto kBetweenPolls = std::chrono::milliseconds{5};
  const auto now = Clock::now();
  if (now < next_poll_) return;
  next_poll_ = now + kBetweenPolls;
  if (poll(polled_.data(), polled_.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    if (polled_[i].revents == 0) continue;
    Presence joined = Presence::Joined;  // else the rank has said goodbye
    node_.table[polled_ranks_[i]].presence.compare_exchange_strong(joined, Presence::Gone);
    polled_[i].fd = -1;
  }
}

std::string ShmMemory::death_of(Rank rank) {
  if (rank == rank_) return "";
  {
    const std::lock_guard lock{mutex_};
    poll_watched();
  }
  const NodeMember& member = node_.table[rank];
  switch (member.presence.load(std::memory_order_acquire)) {
    case Presence::Left:
      return base::format("process {} has left", member.pid);
    case Presence::Gone:
      return base::format("process {} is gone", member.pid);
    default:
      return "";
  }
}

std::string ShmMemory::stall_of(Rank rank) {
  const NodeMember& member = node_.table[rank];
  const std::optional<ProcessStatus> now = status_of_process(member.pid);
  if (!now || now->started != member.started || (now->state != 'T' && now->state != 't')) return "";
  return base::format("process {}, by a {}", member.pid, now->state == 'T' ? "signal" : "debugger");
}

}  // namespace

Result<JoinedMemory> join_shm(const ShmOptions& options) {
  Result<NodeMembership> node = join_node(options, ControlBlock::bytes(options.ranks));
  if (!node.ok()) return node.status();
  std::byte* const control = node.value().data + NodeTable::bytes(options.ranks);
  return JoinedMemory{std::make_shared<ShmMemory>(options, std::move(node).value()), control};
}

Result<std::unique_ptr<Group>> make_shm_group(const ShmOptions& options) {
  auto joined = join_shm(options);
  if (!joined.ok()) return joined.status();
  return std::make_unique<Group>(joined.value().memory, joined.value().control);
}

}  // namespace sluice::transport
