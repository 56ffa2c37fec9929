// shm.cc - shared memory for ranks that are processes of one machine.
//
// Processes meet through mesh.h and hand each other their arena (arena.h). A segment's id says
// which pages of the arena it has, so a new segment needs no announcement: a peer maps it when a
// message first names it. A released segment's pages are free at once; a peer drops its mapping
// when a new segment takes the same pages. Nothing has a name in the file system, so a crash leaves
// nothing behind.
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
  // Every rank brings a first segment of that many bytes (none if 0), which its peers know of.
  static Result<std::shared_ptr<ShmMemory>> join(const ShmOptions& join, std::size_t first_bytes);
  ~ShmMemory() override;
  ShmMemory(const ShmMemory&) = delete;
  ShmMemory& operator=(const ShmMemory&) = delete;

  Rank rank() const override { return rank_; }
  int size() const override { return ranks_; }
  Result<MemoryBlock> allocate(std::size_t bytes) override;
  void release(const MemoryBlock& segment) override;
  Result<std::byte*> address(Rank peer, MemoryLocation location) override;
  int wake_descriptor() const override { return waker_.number(); }
  void wake(Rank peer) override {
    const base::Fd& waker =
        peer == rank_ ? waker_ : peers_[static_cast<std::size_t>(peer)].link.waker;
    eventfd_write(waker.number(), 1);
  }
  std::string death_of(Rank peer) override;
  std::string stall_of(Rank peer) override;

  std::uint64_t first_segment(Rank rank) const {
    return peers_[static_cast<std::size_t>(rank)].link.word;
  }

 private:
  struct Mapping {
    PageRange range;
    std::byte* data = nullptr;
  };
  using Mappings = std::map<std::uint32_t, Mapping>;  // by first page; they do not overlap
  struct Peer {
    MeshLink link;
    Mappings mappings;  // of the own rank: what it has allocated
    std::string death;
  };

  ShmMemory(const ShmOptions& join, Arena arena, base::Fd waker)
      : rank_{join.rank},
        ranks_{join.ranks},
        process_{getpid()},
        waker_{std::move(waker)},
        arena_{std::move(arena)},
        peers_(static_cast<std::size_t>(join.ranks)) {}

  Peer& own() { return peers_[static_cast<std::size_t>(rank_)]; }
  Result<std::byte*> map(Rank rank, Peer& peer, PageRange range);

  const Rank rank_;
  const int ranks_;
  const pid_t process_;
  const base::Fd waker_;
  std::mutex mutex_;  // guards all below
  Arena arena_;
  std::vector<Peer> peers_;  // by rank
};

Result<std::shared_ptr<ShmMemory>> ShmMemory::join(const ShmOptions& join,
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
  base::Fd waker{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  if (!waker.open()) {
    return Status{Code::NoMemory,
                  base::format("no descriptor to be woken by: {}", std::strerror(errno))};
  }
  auto links = join_mesh(join, {file, waker.number()}, first);
  if (!links.ok()) return links.status();
  const std::shared_ptr<ShmMemory> memory{
      new ShmMemory{join, std::move(arena).value(), std::move(waker)}};  // NOLINT: private
  for (std::size_t i = 0; i < memory->peers_.size(); ++i)
    memory->peers_[i].link = std::move(links.value()[i]);
  memory->own().link.word = first;
  if (first != 0) {
    const auto mapped = memory->map(join.rank, memory->own(), PageRange::from_id(first));
    if (!mapped.ok()) return mapped.status();
  }
  return memory;
}

ShmMemory::~ShmMemory() {
  for (const Peer& peer : peers_) {
    for (const auto& [first, mapping] : peer.mappings) unmap_range(mapping.data, mapping.range);
    // A forked child that goes must not hang up for its parent.
    if (!peer.link.socket.open() || getpid() != process_) continue;
    (void)send_packet(peer.link.socket.number(), {.kind = PacketKind::Goodbye, .rank = rank_});
    shutdown(peer.link.socket.number(), SHUT_RDWR);
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

void ShmMemory::release(const MemoryBlock& segment) {
  const std::lock_guard lock{mutex_};
  const PageRange range = PageRange::from_id(segment.id);
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
                  base::format("rank {} names byte {} of a segment of {} bytes", rank,
                               location.offset, range.bytes())};
  }
  const auto found = peer.mappings.find(range.first);
  if (found != peer.mappings.end() && found->second.range.count == range.count) {
    return found->second.data + location.offset;
  }
  if (rank == rank_) {
    return Status{Code::InvalidArgument,
                  base::format("rank {} has no segment {:x}", rank, location.block)};
  }
  const auto data = map(rank, peer, range);
  if (!data.ok()) return data.status();
  return data.value() + location.offset;
}

Result<std::byte*> ShmMemory::map(Rank rank, Peer& peer, PageRange range) {
  const int file = rank == rank_ ? arena_.fd() : peer.link.memory.number();
  struct stat now {};
  // Beyond the file's end lies a bus error.
  if (fstat(file, &now) != 0 ||
      range.end() * (range.bytes() / range.count) > static_cast<std::uint64_t>(now.st_size)) {
    return Status{Code::InvalidArgument,
                  base::format("rank {} has no segment {:x}", rank, range.id())};
  }
  // Whatever else was there, the peer has released: it uses the place anew.
  auto old = peer.mappings.upper_bound(range.first);
  if (old != peer.mappings.begin() && std::prev(old)->second.range.end() > range.first) --old;
  while (old != peer.mappings.end() && old->first < range.end()) {
    unmap_range(old->second.data, old->second.range);
    old = peer.mappings.erase(old);
  }
  std::byte* const data = map_range(file, range);
  if (data == nullptr) {
    return Status{Code::NoMemory,
                  base::format("{} bytes of rank {}'s shared memory cannot be mapped: {}",
                               range.bytes(), rank, std::strerror(errno))};
  }
  peer.mappings.emplace(range.first, Mapping{range, data});
  return data;
}

std::string ShmMemory::death_of(Rank rank) {
  const std::lock_guard lock{mutex_};
  Peer& peer = peers_[static_cast<std::size_t>(rank)];
  if (!peer.death.empty() || rank == rank_) return peer.death;
  const ReceivedPacket arrival = receive_packet(peer.link.socket.number());
  if (arrival.state == ReceivedPacket::State::Packet &&
      arrival.packet.kind == PacketKind::Goodbye) {
    peer.death = base::format("process {} has left", peer.link.pid);
    return peer.death;
  }
  // The socket tells first; but a process that the peer forked may hold it open.
  pollfd process{peer.link.process.number(), POLLIN, 0};
  if (arrival.state == ReceivedPacket::State::Closed ||
      (peer.link.process.open() && poll(&process, 1, 0) > 0)) {
    peer.death = base::format("process {} is gone", peer.link.pid);
  }
  return peer.death;
}

std::string ShmMemory::stall_of(Rank rank) {
  const pid_t pid = peers_[static_cast<std::size_t>(rank)].link.pid;
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

Result<std::shared_ptr<Memory>> connect_shm(const ShmOptions& join) {
  auto memory = ShmMemory::join(join, 0);
  if (!memory.ok()) return memory.status();
  return std::shared_ptr<Memory>{std::move(memory).value()};
}

Result<JoinedMemory> join_shm(const ShmOptions& join) {
  auto memory = ShmMemory::join(join, join.rank == 0 ? ControlBlock::bytes(join.ranks) : 0);
  if (!memory.ok()) return memory.status();
  const auto control = memory.value()->address(0, {memory.value()->first_segment(0), 0});
  if (!control.ok()) return control.status();
  return JoinedMemory{memory.value(), control.value()};
}

Result<std::unique_ptr<Group>> make_shm_group(const ShmOptions& join) {
  auto room = join_shm(join);
  if (!room.ok()) return room.status();
  return std::make_unique<Group>(room.value().memory, room.value().control);
}

}  // namespace sluice::transport
