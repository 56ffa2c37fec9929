// shm.cc - shared memory for ranks that are processes of one machine.
//
// The processes join through mesh.h and send each other their arena (arena.h). The id of a memory
// block contains its pages in the arena, so a new block needs no announcement: a peer maps it when
// a message first names it. The pages of a released block are free at once; a peer unmaps them when
// a new block has the same pages. The memory has no name in the file system, so a crash leaves no
// files.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>
#include <mutex>
#include <utility>

#include "base/format.h"
#include "transport/group.h"
#include "transport/memory/arena.h"
#include "transport/memory/mesh.h"

namespace sluice::transport {
namespace {

class ShmMemory final : public Memory {
 public:
  // `first_bytes` is the size of a first block, whose id all peers receive; 0: no such block.
  static Result<std::shared_ptr<ShmMemory>> join(const ShmOptions& options,
                                                 std::size_t first_bytes);
  ~ShmMemory() override;
  ShmMemory(const ShmMemory&) = delete;
  ShmMemory& operator=(const ShmMemory&) = delete;

  Rank rank() const override { return rank_; }
  int size() const override { return ranks_; }
  Result<MemoryBlock> allocate(std::size_t bytes) override;
  void release(const MemoryBlock& block) override;
  Result<std::byte*> address(Rank peer, MemoryLocation location) override;
  int wake_descriptor() const override { return wake_descriptor_.number(); }
  void wake(Rank peer) override {
    const base::Fd& descriptor = peer == rank_
                                     ? wake_descriptor_
                                     : peers_[static_cast<std::size_t>(peer)].mesh.wake_descriptor;
    eventfd_write(descriptor.number(), 1);
  }
  std::string death_of(Rank peer) override;
  std::string stall_of(Rank peer) override;

  std::uint64_t first_block(Rank rank) const {
    return peers_[static_cast<std::size_t>(rank)].mesh.first_block;
  }

 private:
  struct Mapping {
    PageRange range;
    std::byte* data = nullptr;
  };
  using Mappings = std::map<std::uint32_t, Mapping>;  // by first page; they do not overlap
  struct Peer {
    MeshPeer mesh;
    Mappings mappings;  // at the rank's own entry: all that it has allocated
    std::string death;
    bool has_event = false;  // of its socket or its process, that death_of() has not looked at
  };

  ShmMemory(const ShmOptions& options, Arena arena, base::Fd wake_descriptor)
      : rank_{options.rank},
        ranks_{options.ranks},
        process_{getpid()},
        wake_descriptor_{std::move(wake_descriptor)},
        arena_{std::move(arena)},
        peers_(static_cast<std::size_t>(options.ranks)) {}

  Peer& own() { return peers_[static_cast<std::size_t>(rank_)]; }
  Result<std::byte*> map(Rank rank, Peer& peer, PageRange range);
  void poll_peers();

  const Rank rank_;
  const int ranks_;
  const pid_t process_;
  const base::Fd wake_descriptor_;
  std::mutex mutex_;  // guards the members below
  Arena arena_;
  std::vector<Peer> peers_;     // by rank
  std::vector<pollfd> polled_;  // of each rank its socket and its process
  Clock::time_point next_poll_;
};

Result<std::shared_ptr<ShmMemory>> ShmMemory::join(const ShmOptions& options,
                                                   std::size_t first_bytes) {
  Result<Arena> arena = Arena::create();
  if (!arena.ok()) return arena.status();
  const int file = arena.value().fd();
  std::uint64_t first = 0;
  if (first_bytes > 0) {
    const auto range = arena.value().take(first_bytes);
    if (!range.ok()) return range.status();
    first = range.value().id();
  }
  base::Fd wake_descriptor{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!wake_descriptor.open()) {
    return Status{Code::NoMemory,
                  base::format("cannot create an eventfd: {}", std::strerror(errno))};
  }
  auto peers = join_mesh(options, {file, wake_descriptor.number()}, first);
  if (!peers.ok()) return peers.status();
  const std::shared_ptr<ShmMemory> memory{new ShmMemory{
      options, std::move(arena).value(), std::move(wake_descriptor)}};  // NOLINT: private
  for (std::size_t i = 0; i < memory->peers_.size(); ++i)
    memory->peers_[i].mesh = std::move(peers.value()[i]);
  memory->own().mesh.first_block = first;
  if (first != 0) {
    const auto mapped = memory->map(options.rank, memory->own(), PageRange::from_id(first));
    if (!mapped.ok()) return mapped.status();
  }
  return memory;
}

ShmMemory::~ShmMemory() {
  for (const Peer& peer : peers_) {
    for (const auto& [first, mapping] : peer.mappings) unmap_range(mapping.data, mapping.range);
    // A forked child must not close the connections of its parent.
    if (!peer.mesh.socket.open() || getpid() != process_) continue;
    (void)send_packet(peer.mesh.socket.number(), {.kind = PacketKind::Goodbye, .rank = rank_});
    shutdown(peer.mesh.socket.number(), SHUT_RDWR);
  }
}

Result<MemoryBlock> ShmMemory::allocate(std::size_t bytes) {
  const std::lock_guard lock{mutex_};
  const auto range = arena_.take(bytes);
  if (!range.ok()) return range.status();
  const auto data = map(rank_, own(), range.value());
  if (!data.ok()) {
    arena_.give_back(range.value());
    return data.status();
  }
  return MemoryBlock{range.value().id(), data.value(), bytes};
}

void ShmMemory::release(const MemoryBlock& block) {
  const std::lock_guard lock{mutex_};
  const PageRange range = PageRange::from_id(block.id);
  const auto found = own().mappings.find(range.first);
  if (found == own().mappings.end() || found->second.range.count != range.count) return;
  unmap_range(found->second.data, range);
  own().mappings.erase(found);
  arena_.give_back(range);
}

Result<std::byte*> ShmMemory::address(Rank rank, MemoryLocation location) {
  const std::lock_guard lock{mutex_};
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  const PageRange range = PageRange::from_id(location.block);
  if (location.offset >= range.bytes()) {
    return Status{Code::InvalidArgument,
                  base::format("rank {} names byte {} of a memory block of {} bytes", rank,
                               location.offset, range.bytes())};
  }
  const auto found = peer.mappings.find(range.first);
  if (found != peer.mappings.end() && found->second.range.count == range.count) {
    return found->second.data + location.offset;
  }
  if (rank == rank_) {
    return Status{Code::InvalidArgument,
                  base::format("rank {} has no memory block {:x}", rank, location.block)};
  }
  const auto data = map(rank, peer, range);
  if (!data.ok()) return data.status();
  return data.value() + location.offset;
}

Result<std::byte*> ShmMemory::map(Rank rank, Peer& peer, PageRange range) {
  const int file = rank == rank_ ? arena_.fd() : peer.mesh.memory.number();
  struct stat now {};
  // Access beyond the end of the file would be a bus error.
  if (fstat(file, &now) != 0 ||
      range.end() * (range.bytes() / range.count) > static_cast<std::uint64_t>(now.st_size)) {
    return Status{Code::InvalidArgument,
                  base::format("rank {} has no memory block {:x}", rank, range.id())};
  }
  // The peer has released all other blocks with these pages.
  auto old = peer.mappings.upper_bound(range.first);
  if (old != peer.mappings.begin() && std::prev(old)->second.range.end() > range.first) --old;
  while (old != peer.mappings.end() && old->first < range.end()) {
    unmap_range(old->second.data, old->second.range);
    old = peer.mappings.erase(old);
  }
  std::byte* const data = map_range(file, range);
  if (data == nullptr) {
    return Status{Code::NoMemory, base::format("cannot map {} bytes of rank {}'s shared memory: {}",
                                               range.bytes(), rank, std::strerror(errno))};
  }
  peer.mappings.emplace(range.first, Mapping{range, data});
  return data;
}

// A rank that waits asks for every peer ten times a second. Two system calls for each of them would
// keep the cores busy where hundreds of ranks wait, so one call asks for all.
void ShmMemory::poll_peers() {
  constexpr auto kBetweenPolls = std::chrono::milliseconds{5};
  const auto now = Clock::now();
  if (now < next_poll_) return;
  next_poll_ = now + kBetweenPolls;
  if (polled_.empty()) {
    for (const Peer& peer : peers_) {
      polled_.push_back({peer.mesh.socket.number(), POLLIN, 0});
      polled_.push_back({peer.mesh.process.number(), POLLIN, 0});
    }
  }
  if (poll(polled_.data(), polled_.size(), 0) <= 0) return;
  for (std::size_t i = 0; i < polled_.size(); ++i) {
    if (polled_[i].revents != 0) peers_[i / 2].has_event = true;
  }
}

std::string ShmMemory::death_of(Rank rank) {
  const std::lock_guard lock{mutex_};
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.death.empty() || rank == rank_) return peer.death;
  poll_peers();
  if (!std::exchange(peer.has_event, false)) return "";
  const ReceivedPacket received = receive_packet(peer.mesh.socket.number());
  if (received.state == ReceivedPacket::State::Packet &&
      received.packet.kind == PacketKind::Goodbye) {
    peer.death = base::format("process {} has left", peer.mesh.pid);
  } else {
    // The socket shows the end first, unless a child process of the peer holds it open.
    pollfd process{peer.mesh.process.number(), POLLIN, 0};
    if (received.state == ReceivedPacket::State::Closed ||
        (peer.mesh.process.open() && poll(&process, 1, 0) > 0)) {
      peer.death = base::format("process {} is gone", peer.mesh.pid);
    }
  }
  if (!peer.death.empty()) {  // it has no more events
    polled_[2 * static_cast<std::size_t>(rank)].fd = -1;
    polled_[2 * static_cast<std::size_t>(rank) + 1].fd = -1;
  }
  return peer.death;
}

std::string ShmMemory::stall_of(Rank rank) {
  const pid_t pid = peers_[static_cast<std::size_t>(rank)].mesh.pid;
  std::ifstream file{base::format("/proc/{}/stat", pid)};
  std::string text;
  std::getline(file, text);
  // "17 (name, which may hold anything) S ...": T is stopped by a signal, t by a debugger.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 2 >= text.size()) return "";
  const char state = text[name_end + 2];
  if (state != 'T' && state != 't') return "";
  return base::format("process {}, by a {}", pid, state == 'T' ? "signal" : "debugger");
}

}  // namespace

Result<JoinedMemory> join_shm(const ShmOptions& options) {
  auto memory =
      ShmMemory::join(options, options.rank == 0 ? ControlBlock::bytes(options.ranks) : 0);
  if (!memory.ok()) return memory.status();
  const auto control = memory.value()->address(0, {memory.value()->first_block(0), 0});
  if (!control.ok()) return control.status();
  return JoinedMemory{memory.value(), control.value()};
}

Result<std::unique_ptr<Group>> make_shm_group(const ShmOptions& options) {
  auto joined = join_shm(options);
  if (!joined.ok()) return joined.status();
  return std::make_unique<Group>(joined.value().memory, joined.value().control);
}

}  // namespace sluice::transport
