// bench_pattern.h - data for a benchmark that checks every all-reduce it times.
//
// Element i of rank r of n holds (i n + (r + i) mod n) mod p + 1, times a power of two, with p a
// prime: unique to (rank, element) for the next p elements, and small enough for the type to hold
// every sum exactly, in whatever order it is taken. The least and the greatest value of an element
// come from another rank at the next element.
//
// All-reduces that follow one another in place multiply a sum by n each, and leave a mean, minimum
// or maximum alone. So one look at the buffer after k of them checks all k. Only floats with an n
// that is no power of two are rounded on the way; they get a tolerance of 2 k half units.
//
// Thread-safety: immutable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "sluice/schedule.h"
#include "sluice/types.h"

namespace sluice::cli {

class BenchPattern {
 public:
  BenchPattern(DataType type, ReduceOp op, int ranks);

  // How many all-reduces may follow one another before a value leaves the type's range, or the
  // tolerance grows past telling right from wrong.
  int most_operations() const { return most_operations_; }

  void fill(void* data, std::size_t count, Rank rank) const;

  struct Wrong {
    std::size_t element = 0;
    double found = 0;
    double expected = 0;
  };
  // The first element that is not what `operations` all-reduces make of it.
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
  double tolerance_ = 0;  // of one operation; 0: exact
  int most_operations_;
};

}  // namespace sluice::cli
