// communicator.h - collectives between the ranks of a program.
//
//   auto comm = sluice::Communicator::from_env();
//   auto pool = comm.allocate(bytes);                       // memory peers can read in place
//   comm.all_reduce(pool, {.type = sluice::DataType::F32}).wait();
//
// Every rank of a communicator calls the same collectives in the same order. A call starts the
// collective and returns its Work; several may be in flight. wait() and done() drive all that this
// rank has issued, on any of its communicators, so ranks may wait in different orders. A rank that
// differs in type, operation, size or order from its peers is told so before any data is combined.
// After a lost peer or a deadline every later call fails at once, with that first cause.
//
// Thread-safety: a communicator and those split from it belong to one thread at a time.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/status.h"
#include "sluice/types.h"

namespace sluice {

struct CollectiveOptions {
  DataType type = DataType::F32;
  ReduceOp op = ReduceOp::Sum;  // of all_reduce, reduce_scatter and reduce
  Rank root = 0;                // of broadcast and reduce
  std::string algorithm;        // by name; empty: chosen by size
};

namespace engine {
class CommunicatorState;
class PoolState;
}  // namespace engine

// Memory that peers read and write in place. Freed with the last copy of the handle; must outlive
// the collectives on it.
class Pool {
 public:
  std::byte* data() const;
  std::size_t bytes() const;
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data()), bytes() / sizeof(T)};
  }

 private:
  friend class Communicator;
  explicit Pool(std::shared_ptr<engine::PoolState> state) : state_{std::move(state)} {}
  std::shared_ptr<engine::PoolState> state_;
};

// A collective that was issued. Dropping it does not cancel the collective.
class Work {
 public:
  // Blocks until the result is there and the buffer is the caller's again. Throws Error: a peer was
  // lost or differs, or nothing has moved for the deadline (by default the communicator's).
  void wait();
  void wait(std::chrono::milliseconds deadline);
  // Whether it is; never blocks. Throws as wait() does.
  bool done();
  // What wait() would throw, or ok; asks nothing of the peers.
  Status status() const;

  // For the library's own layers: `state` is an opaque handle.
  Work(std::shared_ptr<engine::CommunicatorState> state, std::uint64_t number)
      : state_{std::move(state)}, number_{number} {}

 private:
  std::shared_ptr<engine::CommunicatorState> state_;
  std::uint64_t number_;
};

class Communicator {
 public:
  // The ranks that `sluice launch`, mpirun, srun or torchrun started, on one machine or several;
  // alone when none of them did. Returns when all have joined; throws Error, with who is missing,
  // after `deadline`.
  static Communicator from_env(std::chrono::milliseconds deadline = std::chrono::minutes{2});

  // Ranks as threads of this process: one communicator for each.
  static std::vector<Communicator> in_process(int ranks);

  Rank rank() const;
  int size() const;
  // Which machine this rank is on, and its number among this communicator's ranks there.
  int node() const;
  int local_rank() const;

  // How long a collective may stand still before it fails; 10 minutes by default.
  void set_deadline(std::chrono::milliseconds deadline);

  Pool allocate(std::size_t bytes);

  // `count` elements at `data`, in place. reduce_scatter leaves rank r's result, and all_gather
  // takes its input, in the r-th part of the buffer: elements slice(count, r).
  Work all_reduce(void* data, std::size_t count, const CollectiveOptions& options = {});
  Work reduce_scatter(void* data, std::size_t count, const CollectiveOptions& options = {});
  Work all_gather(void* data, std::size_t count, const CollectiveOptions& options = {});
  Work broadcast(void* data, std::size_t count, const CollectiveOptions& options = {});
  Work reduce(void* data, std::size_t count, const CollectiveOptions& options = {});
  Work all_reduce(const Pool& pool, const CollectiveOptions& options = {});

  // Returns when every rank has called it.
  void barrier();

  // The algorithm that such a call runs by: the one asked for, else the one that SLUICE_ALGORITHM
  // names for its size, else the cheapest by constants measured once on this machine.
  std::string_view algorithm_for(Collective collective, std::size_t count,
                                 const CollectiveOptions& options = {}) const;

  // The ranks that give the same colour become a communicator of their own, ordered by key, then
  // rank. Every rank must call it.
  Communicator split(int colour, int key = 0);

  struct Slice {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  Slice slice(std::size_t count, Rank rank) const;

  // For the library's own layers: an opaque handle.
  const std::shared_ptr<engine::CommunicatorState>& state() const { return state_; }

 private:
  explicit Communicator(std::shared_ptr<engine::CommunicatorState> state)
      : state_{std::move(state)} {}
  Work issue(Collective collective, void* data, std::size_t count,
             const CollectiveOptions& options);
  std::shared_ptr<engine::CommunicatorState> state_;
};

}  // namespace sluice
