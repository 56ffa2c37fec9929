// bench_allreduce.h - one rank of `sluice bench allreduce`: times all-reduces and checks results.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "sluice/communicator.h"
#include "sluice/schedule.h"
#include "sluice/types.h"

namespace sluice::cli {

struct AllReduceBench {
  DataType type = DataType::F32;
  ReduceOp op = ReduceOp::Sum;
  std::string algorithm;            // empty: the library chooses
  std::vector<std::int64_t> sizes;  // bytes
  bool foreign = false;             // use ordinary memory instead of a pool
  int iterations = 0;               // per size; 0: depends on the size
};

struct AllReduceRow {
  std::int64_t bytes = 0;
  std::string algorithm;
  double p50_us = 0;
  double p99_us = 0;
  double algbw_gbps = 0;  // buffer bytes / median time, in 10^9 bytes per second
  double busbw_gbps = 0;  // algbw x 2(n-1)/n: the least that a link must carry
  bool verified = false;
};

// Runs the sweep; collective. Calls `report` with each row, which is the same on all ranks, and
// `report_error` with a message for a wrong result on this rank. The time of an operation is the
// mean over ranks, measured in a series of back-to-back operations. Throws Error when a peer is
// lost.
void bench_all_reduce(Communicator& comm, const AllReduceBench& bench,
                      const std::function<void(const AllReduceRow&)>& report,
                      const std::function<void(const std::string&)>& report_error);

// Test data whose result after several all-reduces is known in closed form.
class BenchPattern {
 public:
  BenchPattern(DataType type, ReduceOp op, int ranks);

  // The number of all-reduces in a row before values overflow the type, or before the tolerance
  // becomes too large to detect errors.
  int most_operations() const { return most_operations_; }

  void fill(void* data, std::size_t count, Rank rank) const;

  struct Wrong {
    std::size_t element = 0;
    double found = 0;
    double expected = 0;
  };
  // The first element that differs from the result of `operations` all-reduces in a row.
  std::optional<Wrong> check(const void* data, std::size_t count, int operations) const;

 private:
  template <class T>
  void fill_values(T* values, std::size_t first, std::size_t count, Rank rank) const;
  template <class T>
  std::optional<Wrong> check_values(const T* values, std::size_t first, std::size_t count,
                                    int operations) const;
  std::int64_t whole_result(std::int64_t start) const;

  DataType type_;
  ReduceOp op_;
  int ranks_;
  std::int64_t modulus_;
  double scale_;
  double tolerance_ = 0;  // relative, per operation; 0: exact
  int most_operations_;
};

}  // namespace sluice::cli
