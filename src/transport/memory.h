// memory.h - memory that the ranks of one node share, and who of them is alive.
//
// The transports `inproc` (ranks are threads) and `shm` (ranks are processes) are two ways to get
// it; messages, slots and bells (control.h) are the same for both.
// Thread-safety: every function may be called from any thread of the rank.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::transport {

// Where bytes lie: in which of a rank's segments, and how far in.
struct MemoryLocation {
  std::uint64_t segment = 0;
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
  virtual std::string standstill_of(Rank peer) = 0;
};

}  // namespace sluice::transport
