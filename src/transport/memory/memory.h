// memory.h - memory that the ranks of one node share, and whether these ranks are alive.
//
// There are two implementations: in `inproc` ranks are threads, in `shm` they are processes.
// Channels, slots and doorbells (control.h) are the same for both.
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

// A position in one of a rank's memory blocks.
struct MemoryLocation {
  std::uint64_t block = 0;
  std::uint64_t offset = 0;
};

// Memory of one rank that its peers can reach.
struct MemoryBlock {
  std::uint64_t id = 0;  // never 0 for a block that exists
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

class Memory {
 public:
  virtual ~Memory() = default;

  virtual Rank rank() const = 0;
  virtual int size() const = 0;

  // Allocates zeroed memory, aligned to a page. Peers find it by its id, which a message names.
  virtual Result<MemoryBlock> allocate(std::size_t bytes) = 0;
  virtual void release(const MemoryBlock& block) = 0;

  // The address of a peer's bytes in this process. The first call for a block maps it.
  virtual Result<std::byte*> address(Rank peer, MemoryLocation location) = 0;

  // A descriptor that becomes readable when a peer wakes this rank, for ranks that sleep on
  // descriptors.
  virtual int wake_descriptor() const = 0;
  virtual void wake(Rank peer) = 0;

  // "" while the peer lives, else a description of its end. A rank looks at a few peers itself; of
  // the others it learns when one of those that look at them has seen it.
  virtual std::string death_of(Rank peer) = 0;
  // From now on this rank looks at that peer itself.
  virtual void watch(Rank /*peer*/) {}
  // "" unless the peer's process is stopped, else a description: "process 17, by a signal".
  virtual std::string stall_of(Rank peer) = 0;
};

// One Group for each rank, for ranks that are threads of this process. One thread uses each Group.
std::vector<std::unique_ptr<Group>> make_inproc_groups(int ranks);

// The memory of a rank that is alone on its node.
std::shared_ptr<Memory> make_single_rank_memory();

// Ranks that are processes of one machine. Each maps the memory of its peers when it needs it.
struct ShmOptions {
  Rank rank = 0;
  int ranks = 1;
  std::string job;    // equal on all ranks, and different for every job of the user
  std::string token;  // a secret of the ranks of this job
  Clock::time_point deadline;
};

// The memory, and a control block (control.h) for all ranks, which rank 0 has allocated.
struct JoinedMemory {
  std::shared_ptr<Memory> memory;
  std::byte* control = nullptr;
};

// Both functions return when all ranks have joined. The error names the missing ranks.
Result<JoinedMemory> join_shm(const ShmOptions& options);
Result<std::unique_ptr<Group>> make_shm_group(const ShmOptions& options);

}  // namespace sluice::transport
