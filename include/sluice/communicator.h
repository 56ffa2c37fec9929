// communicator.h - collectives between the ranks of a program.
//
//   auto comm = sluice::Communicator::from_env();
//   auto pool = comm.allocate(bytes);                       // memory peers can read in place
//   comm.all_reduce(pool.as(sluice::DataType::BF16)).wait();
//
// Every rank of a communicator makes the same calls in the same order. A call starts the collective
// and returns a Work; several may be in flight. wait() and done() move all collectives that this
// rank has issued, on any of its communicators, so ranks may wait in different orders.
//
// Failures. When the calls of two ranks differ in type, operation, size or order, wait() throws
// Error with Code::Mismatch before any data is combined. After a mismatch, a lost peer or a
// deadline the communicator is poisoned: every later call throws the first cause at once.
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
#include <utility>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/status.h"
#include "sluice/types.h"
#include "sluice/version.h"

namespace sluice {

class Communicator;

namespace engine {
class CommunicatorState;  // opaque to users: the state that a Communicator and its Works share
Communicator communicator_with(std::shared_ptr<CommunicatorState> state);
}  // namespace engine

struct CollectiveOptions {
  ReduceOp op = ReduceOp::Sum;  // of all_reduce, reduce_scatter and reduce
  Rank root = 0;                // of broadcast and reduce
  std::string algorithm;        // a name like "ring"; empty: Sluice chooses one by size
};

// Memory that peers read and write in place. It is freed with the last copy of the handle, and must
// outlive the collectives on it.
class SLUICE_API Pool {
 public:
  // Communicator::allocate() uses this. Other memory works too, but peers cannot read it in place.
  Pool(std::shared_ptr<std::byte> data, std::size_t bytes)
      : data_{std::move(data)}, bytes_{bytes} {}

  std::byte* data() const { return data_.get(); }
  std::size_t bytes() const { return bytes_; }
  template <class T>
  std::span<T> as() const {
    return {reinterpret_cast<T*>(data()), bytes() / sizeof(T)};
  }
  Elements as(DataType type) const { return {data(), bytes() / size_of(type), type}; }

 private:
  std::shared_ptr<std::byte> data_;
  std::size_t bytes_;
};

// A collective that was issued. Dropping it does not cancel the collective.
// (g++ takes no attributes of both kinds, so SLUICE_API is spelt out.)
class [[nodiscard, gnu::visibility("default")]] Work {
 public:
  // Blocks until the result is in the buffer and the caller may change the buffer again. Throws
  // Error when a peer is lost or makes a different call, or when nothing has moved for `deadline`
  // (the first form: the communicator's).
  void wait();
  void wait(std::chrono::milliseconds deadline);
  // Whether wait() would return at once. Never blocks. Throws what wait() throws.
  bool done();
  // The error that wait() would throw, or ok. Neither blocks nor throws, and moves no data.
  Status status() const;

  // Only the library itself calls this.
  Work(std::shared_ptr<engine::CommunicatorState> state, std::uint64_t number)
      : state_{std::move(state)}, number_{number} {}

 private:
  std::shared_ptr<engine::CommunicatorState> state_;
  std::uint64_t number_;
};

// A group of ranks, as one of them sees it. A copy is the same communicator.
class SLUICE_API Communicator {
 public:
  // The ranks that `sluice launch`, mpirun, srun or torchrun started, on one machine or several; a
  // single rank when none of them did. Blocks until all ranks have joined. Throws Error when some
  // have not joined after `deadline`, with the numbers of the missing ranks, or when an environment
  // variable is wrong.
  static Communicator from_env(std::chrono::milliseconds deadline = std::chrono::minutes{2});

  // One communicator for each rank; the ranks are threads of this process. Does not block. Throws
  // Error when `ranks` is less than 1.
  static std::vector<Communicator> in_process(int ranks);

  Rank rank() const;
  int size() const;
  int node() const;        // the machine that this rank is on, from 0
  int local_rank() const;  // this rank's number among the communicator's ranks there, from 0

  // The longest time without progress before a collective fails. 10 minutes by default.
  void set_deadline(std::chrono::milliseconds deadline);

  // Throws Error when there is not enough memory.
  Pool allocate(std::size_t bytes);

  // Collectives in place. A vector, array or span knows its type; other memory must name it:
  //
  //   comm.all_reduce(values);
  //   comm.all_reduce({bits, count, DataType::F16});
  //
  // They return without waiting for a peer. The elements belong to the library until wait() returns
  // or done() is true. They throw Error when an argument is wrong or when the communicator has
  // failed.
  //
  // all_reduce leaves the result at every rank, reduce at `root`. broadcast sends the data of
  // `root`. reduce_scatter leaves rank r's part of the result, and all_gather takes rank r's input,
  // in the elements slice(count, r).
  Work all_reduce(Elements data, const CollectiveOptions& options = {});
  Work reduce_scatter(Elements data, const CollectiveOptions& options = {});
  Work all_gather(Elements data, const CollectiveOptions& options = {});
  Work broadcast(Elements data, const CollectiveOptions& options = {});
  Work reduce(Elements data, const CollectiveOptions& options = {});

  // The same with input and output apart. The call copies the input, so that may change as soon as
  // it returns. The two must have the same type and must not overlap. The output of reduce_scatter
  // and the input of all_gather are this rank's part alone. Only `root` has an output of reduce.
  Work all_reduce(ConstElements input, Elements output, const CollectiveOptions& options = {});
  Work reduce_scatter(ConstElements input, Elements output, const CollectiveOptions& options = {});
  Work all_gather(ConstElements input, Elements output, const CollectiveOptions& options = {});
  Work reduce(ConstElements input, Elements output, const CollectiveOptions& options = {});

  // Blocks until every rank has called it. Throws like Work::wait().
  void barrier();

  // The algorithm that such a call with so many bytes would run: the one in `options`, else the one
  // that SLUICE_ALGORITHM names for its size, else the cheapest by measured constants. Does not
  // block. Throws Error when an option is wrong.
  std::string_view algorithm_for(Collective collective, std::size_t bytes,
                                 const CollectiveOptions& options = {}) const;

  // A communicator of the ranks that pass the same colour, ordered by key and then by rank. Every
  // rank must call it. Blocks until all have. Throws like Work::wait(), or when ranks cannot
  // connect.
  Communicator split(int colour, int key = 0);

  struct Slice {
    std::size_t first = 0;
    std::size_t count = 0;
  };
  // The elements of a rank's part in reduce_scatter and all_gather.
  Slice slice(std::size_t count, Rank rank) const;

  // Only the library itself calls this.
  const std::shared_ptr<engine::CommunicatorState>& state() const { return state_; }

 private:
  friend Communicator engine::communicator_with(std::shared_ptr<engine::CommunicatorState> state);
  explicit Communicator(std::shared_ptr<engine::CommunicatorState> state)
      : state_{std::move(state)} {}
  std::shared_ptr<engine::CommunicatorState> state_;
};

}  // namespace sluice
