// memory.h - memory that the ranks of one node share, and who of them is alive.
//
// The transports `inproc` (ranks are threads) and `shm` (ranks are processes) are two ways to get
// it; messages, slots and bells (control.h) are the same for both.
// Thread-safety: every function may be called from any thread of the rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/wait.h"

namespace sluice::transport {

class Group;

// Where bytes lie: in which of a rank's segments, and how far in.
struct MemoryLocation {
  std::uint64_t block = 0;
  std::uint64_t offset = 0;
};

// Memory of one rank that its peers can reach.
struct MemoryBlock {
  std::uint64_t id = 0;  // never 0 for a segment that exists
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

class Memory {
 public:
  virtual ~Memory() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Zeroed memory, aligned to a page. Peers find it by its id when a message names it.
  virtual Result<MemoryBlock> allocate(std::size_t bytes) = 0;
  virtual void release(const MemoryBlock& segment) = 0;

  // Where a peer's bytes lie in this process; maps the segment the first time.
  virtual Result<std::byte*> address(Rank peer, MemoryLocation location) = 0;

  // For who sleeps on descriptors: this rank's becomes readable when a peer wakes it.
  virtual int wake_descriptor() const = 0;
  virtual void wake(Rank peer) = 0;

  // "" while the peer lives, else how it ended.
  virtual std::string death_of(Rank peer) = 0;
  // "" while the peer may run, else what holds it up from outside.
  virtual std::string stall_of(Rank peer) = 0;
};

// inproc: ranks are threads of one process, which sees every rank's memory.

// One Group for each rank; each is then used by one thread.
std::vector<std::unique_ptr<Group>> make_inproc_groups(int ranks);

// The memory of a rank that is alone on its node.
std::shared_ptr<Memory> make_single_rank_memory();

// shm: ranks are processes of one machine, and each maps what it needs of its peers' memory.

struct ShmOptions {
  Rank rank = 0;
  int ranks = 1;
  std::string job;    // the same on all ranks, another one for every job of the user
  std::string token;  // what only ranks of this job know
  Clock::time_point deadline;
};

// Returns when all ranks have joined. The error names the ranks that have not.
Result<std::shared_ptr<Memory>> connect_shm(const ShmOptions& join);

// The same, with a control block (control.h) for all ranks, which rank 0 has made.
struct JoinedMemory {
  std::shared_ptr<Memory> memory;
  std::byte* control = nullptr;
};
Result<JoinedMemory> join_shm(const ShmOptions& join);

// The same as a group.
Result<std::unique_ptr<Group>> make_shm_group(const ShmOptions& join);

}  // namespace sluice::transport
