// bucket_list.h - the buckets of a step, made anew for every step that sends other chunks.
//
// Theta counts what is sent, so that sparse steps have fewer buckets, of more gradients each.
// In the steady state nothing is allocated. Thread-safety: one thread at a time; a list is not made
// anew while its buckets are on their way.
//
// readiness.h - which gradients of the step under way are ready, and which buckets may leave.
//
// A bucket may leave once all of its gradients are ready and all buckets before it may leave.
// In the steady state nothing is allocated. Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "buckets/buckets.h"
#include "gradient/bucket.h"
#include "gradient/layout.h"
#include "gradient/sparse/sparse_bucket.h"

namespace sluice::gradient {

class BucketList {
 public:
  // What it refers to must outlive the list.
  struct Plan {
    const std::vector<GradientSpec>& gradients;
    const PoolLayout& layout;
    const GradientOptions& options;
    const WireBuffer* wire = nullptr;   // where f32 gradients travel narrowed; null: they do not
    const WireBuffer* apart = nullptr;  // where sparse ones travel; null: in the pool
  };
  // All gradients, whole.
  BucketList(const Plan& plan, StepContext& step);
  BucketList(const BucketList&) = delete;
  BucketList& operator=(const BucketList&) = delete;

  void set_whole();
  void set_sparse(const SparseContext& holding);

  const std::vector<buckets::BucketRange>& ranges() const { return ranges_; }
  std::span<Bucket* const> buckets() const { return buckets_; }

 private:
  void clear();
  void add_whole(const buckets::BucketRange& range);

  Plan plan_;
  StepContext* step_;
  std::vector<buckets::BucketRange> whole_ranges_;
  std::vector<buckets::BucketRange> ranges_;
  std::vector<buckets::GradientSize> sent_;  // by position
  // Never more than is reserved, so that they stay where they are.
  std::vector<DenseBucket> whole_;
  std::vector<SparseBucket> sparse_;
  std::vector<Bucket*> buckets_;
};

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
