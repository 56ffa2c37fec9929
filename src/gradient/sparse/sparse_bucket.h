// sparse_bucket.h - a bucket of f32 gradients that sends their selected chunks only, packed.
//
// Where no step is ever skipped it packs to the front of its part of the pool, and r moves when it
// is loaded. Else it packs into memory apart, and neither pool nor r is touched before deliver().
// Either way the gradients then hold the mean of what was sent, and zero elsewhere.
#pragma once

#include <cstddef>
#include <vector>

#include "gradient/bucket.h"
#include "gradient/layout.h"
#include "gradient/sparse/residual.h"

namespace sluice::gradient {

// What a gradient adds to what is held back of it besides itself.
struct WeightDecay {
  const float* weights = nullptr;  // null: nothing
  float factor = 0;
};

// What the sparse buckets of a step share.
struct SparseContext {
  Residual* residual = nullptr;
  const SparseChunks* chunks = nullptr;
  SparseStep step;
  const std::vector<WeightDecay>* decays = nullptr;  // by gradient
};

class SparseBucket final : public Bucket {
 public:
  struct Place {
    const std::vector<GradientSpec>& gradients;
    const PoolLayout& layout;
    buckets::BucketRange range;
    std::size_t number = 0;
    std::byte* apart = nullptr;  // where it travels; null: in the pool
  };
  // `step` and what the others refer to must outlive it.
  SparseBucket(const Place& place, const SparseContext& holding, StepContext& step);

  std::byte* data() const override { return in_place() ? in_pool() : place_.apart; }
  std::size_t count() const override { return count_; }
  DataType type() const override {
    return step().passage.narrows() ? step().passage.wire_data_type() : DataType::F32;
  }
  ReduceOp op() const override { return step().passage.narrows() ? ReduceOp::Sum : ReduceOp::Mean; }
  void deliver() override;

 private:
  void fill() override;
  void drain() override;
  void compact();
  void expand_in_place();
  void pack();
  void check_sums();
  void note_faults(std::size_t i, const PackFaults& faults);

  bool in_place() const { return place_.apart == nullptr; }
  std::byte* in_pool() const { return step().pool + place_.layout.begin(place_.range.first); }
  std::size_t gradient(std::size_t k) const {
    return place_.layout.order()[place_.range.first + k];
  }
  std::size_t elements(std::size_t i) const { return place_.gradients[i].count; }
  std::size_t sent(std::size_t i) const;
  float* slot(std::size_t i) const {
    return reinterpret_cast<float*>(step().pool + place_.layout.offset(i));
  }
  kernels::Addend addend(std::size_t i) const;

  Place place_;
  SparseContext holding_;
  std::size_t count_ = 0;
};

}  // namespace sluice::gradient
