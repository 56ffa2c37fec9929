// layout.h - the place of each gradient in the pool, and the gradients of a step that are ready.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "buckets/buckets.h"
#include "sluice/types.h"

namespace sluice::gradient {

// The properties of a gradient that all ranks must agree on.
struct GradientSpec {
  std::string name;
  std::size_t count = 0;  // elements
  DataType type = DataType::F32;
  bool may_be_sparse = true;  // false: always sent whole, as biases are
  std::string strides = {};   // in memory; empty: contiguous
  bool operator==(const GradientSpec&) const = default;
};

// Elements of a gradient that arrive together.
struct GradientPart {
  std::size_t first = 0;
  std::size_t count = 0;
  std::uint32_t steps = 1;  // the number of steps whose gradients it sums up
  bool operator==(const GradientPart&) const = default;
};

inline constexpr std::size_t kSlotAlignment = 64;

// Slots are in `order`. Each begins at a multiple of 64 bytes, so the gaps between slots are whole
// elements, and consecutive slots of one type are one array. Gaps are zero and are sent too.
// Thread-safety: immutable once built.
class PoolLayout {
 public:
  // REQUIRES: order is a permutation of the gradients' numbers.
  PoolLayout(const std::vector<GradientSpec>& gradients, std::vector<std::size_t> order);

  std::size_t size() const { return order_.size(); }    // gradients
  std::size_t bytes() const { return begins_.back(); }  // of the pool
  const std::vector<std::size_t>& order() const { return order_; }

  // By gradient.
  std::size_t position(std::size_t i) const { return positions_[i]; }
  std::size_t offset(std::size_t i) const { return begins_[positions_[i]]; }
  std::size_t bytes_of(std::size_t i) const { return sizes_[positions_[i]].bytes; }

  // By position; begin(size()) is the end of the pool.
  std::size_t begin(std::size_t position) const { return begins_[position]; }
  const std::vector<buckets::GradientSize>& sizes() const { return sizes_; }

 private:
  std::vector<std::size_t> order_;
  std::vector<std::size_t> positions_;        // by gradient
  std::vector<buckets::GradientSize> sizes_;  // by position
  std::vector<std::size_t> begins_;           // by position, and the end
};

// The gradients in `seen`, then the others in reverse order of registration, since backward usually
// computes the last registered gradients first.
std::vector<std::size_t> observed_order(const std::vector<std::size_t>& seen,
                                        std::size_t gradients);

// The ready gradients of the step under way, and the number of buckets that may be sent. A bucket
// may be sent once all its gradients are ready and all buckets before it may be sent. It allocates
// nothing in the steady state. Thread-safety: one thread at a time.
class Readiness {
 public:
  // `layout` must outlive it.
  Readiness(const PoolLayout& layout, const std::vector<buckets::BucketRange>& buckets);

  // Returns how many buckets may be sent now. REQUIRES: not is_ready(i).
  std::size_t mark(std::size_t i);
  bool is_ready(std::size_t i) const { return ready_[i]; }
  // The bucket of gradient i, and whether all gradients of a bucket are ready.
  std::size_t bucket_of(std::size_t i) const { return bucket_of_[layout_->position(i)]; }
  bool is_full(std::size_t bucket) const { return missing_[bucket] == 0; }
  // The ready gradients, in the order in which they were marked.
  const std::vector<std::size_t>& marked() const { return marked_; }

  // Begins the next step: nothing is ready.
  void clear();
  // REQUIRES: nothing is ready.
  void set_buckets(const std::vector<buckets::BucketRange>& buckets);

 private:
  const PoolLayout* layout_;
  std::vector<std::size_t> bucket_of_;  // by position
  std::vector<std::size_t> sizes_;      // number of gradients, by bucket
  std::vector<std::size_t> missing_;    // gradients that are not ready, by bucket
  std::vector<bool> ready_;             // by gradient
  std::vector<std::size_t> marked_;
  std::size_t sendable_ = 0;  // number of buckets
};

}  // namespace sluice::gradient
