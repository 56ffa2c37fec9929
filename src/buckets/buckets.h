// buckets.h - groups gradients into buckets, which are sent together.
//
// A bucket is a run of gradients in the order of backward, all of one data type. Gradients without
// elements fit into any bucket. These are pure functions, so all ranks and the simulator get the
// same buckets.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sluice/status.h"
#include "sluice/types.h"
#include "sluice/version.h"

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

// Closes a bucket when it has theta bytes, or when the next gradient has another type. With theta
// 1, every gradient is a bucket. With a very large theta, every run of gradients of one type is
// one.
SLUICE_API std::vector<BucketRange> lazy_buckets(std::span<const GradientSize> gradients,
                                                 std::size_t theta);
// The same, into existing memory.
SLUICE_API void lazy_buckets(std::span<const GradientSize> gradients, std::size_t theta,
                             std::vector<BucketRange>& buckets);

// Bucket k has the next groups[k] gradients; it is split where the type changes. Fails unless every
// group has at least one gradient and all groups together have all gradients.
SLUICE_API Result<std::vector<BucketRange>> grouped_buckets(std::span<const GradientSize> gradients,
                                                            std::span<const int> groups);

}  // namespace sluice::buckets
