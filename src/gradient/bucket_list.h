// bucket_list.h - the buckets of a step, made anew for every step that sends other chunks.
//
// Theta counts what is sent, so that sparse steps have fewer buckets, of more gradients each.
// In the steady state nothing is allocated. Thread-safety: one thread at a time; a list is not made
// anew while its buckets are on their way.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "gradient/dense_bucket.h"
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

}  // namespace sluice::gradient
