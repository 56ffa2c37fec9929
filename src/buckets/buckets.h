// buckets.h - which gradients travel together.
//
// A bucket is a run of gradients in the order of backward, all of one data type; gradients without
// elements fit any. Plans are pure functions: every rank, and the simulator, makes the same.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sluice/status.h"
#include "sluice/types.h"

namespace sluice::buckets {

struct GradientSize {
  std::size_t bytes = 0;
  DataType type = DataType::F32;
};

struct BucketRange {
  std::size_t first = 0;  // gradients first .. first + count - 1
  std::size_t count = 0;
  DataType type = DataType::F32;
  bool operator==(const BucketRange&) const = default;
};

// Lazy: a bucket is closed once it has theta bytes, or where the next gradient is of another type.
// Theta 1 makes a bucket of each gradient, a huge one makes one bucket of each run of a type.
std::vector<BucketRange> lazy_buckets(std::span<const GradientSize> gradients, std::size_t theta);
// The same into memory that is there already.
void lazy_buckets(std::span<const GradientSize> gradients, std::size_t theta,
                  std::vector<BucketRange>& buckets);

// Bucket k has the next groups[k] gradients, or is cut where the type changes. The groups must hold
// at least one gradient each, and all of them together.
Result<std::vector<BucketRange>> grouped_buckets(std::span<const GradientSize> gradients,
                                                 std::span<const int> groups);

}  // namespace sluice::buckets
