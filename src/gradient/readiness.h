// readiness.h - which gradients of the step under way are ready, and which buckets may leave.
//
// A bucket may leave once all of its gradients are ready and all buckets before it may leave.
// In the steady state nothing is allocated. Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <vector>

#include "buckets/buckets.h"
#include "gradient/layout.h"

namespace sluice::gradient {

class Readiness {
 public:
  // `layout` must outlive it.
  Readiness(const PoolLayout& layout, const std::vector<buckets::BucketRange>& buckets);

  // Returns how many buckets may leave now. REQUIRES: not is_ready(i).
  std::size_t mark(std::size_t i);
  bool is_ready(std::size_t i) const { return ready_[i]; }
  // The bucket that gradient i is in, and whether all of a bucket's gradients are ready.
  std::size_t bucket_of(std::size_t i) const { return bucket_of_[layout_->position(i)]; }
  bool is_full(std::size_t bucket) const { return missing_[bucket] == 0; }
  // The gradients in the order in which they were marked.
  const std::vector<std::size_t>& marked() const { return marked_; }

  // Nothing is ready any more.
  void clear();
  // Other buckets of the same gradients. REQUIRES: nothing is ready.
  void set_buckets(const std::vector<buckets::BucketRange>& buckets);

 private:
  const PoolLayout* layout_;
  std::vector<std::size_t> bucket_of_;  // by position
  std::vector<std::size_t> sizes_;      // gradients a bucket
  std::vector<std::size_t> missing_;    // of those, not ready
  std::vector<bool> ready_;             // by gradient
  std::vector<std::size_t> marked_;
  std::size_t leavable_ = 0;
};

}  // namespace sluice::gradient
