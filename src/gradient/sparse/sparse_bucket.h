// sparse_bucket.h - a bucket of f32 gradients that sends only their selected chunks, packed.
//
// If no step can be skipped, load() packs to the front of the bucket's part of the pool and updates
// the residual. Otherwise load() packs into separate memory, and pool and residual stay unchanged
// until deliver(). In both cases the gradients are then the mean in the sent chunks, else zero.
#pragma once

#include <cstddef>
#include <vector>

#include "gradient/bucket.h"
#include "gradient/layout.h"
#include "gradient/sparse/residual.h"

namespace sluice::gradient {

// Weight decay is added to a gradient together with the residual.
struct WeightDecay {
  const float* weights = nullptr;  // null: no decay
  float factor = 0;
};

// The data that the sparse buckets of a step share.
struct SparseContext {
  Residual* residual = nullptr;
  const SparseChunks* chunks = nullptr;
  SparseStep step;
  const std::vector<WeightDecay>* decays = nullptr;  // by gradient
};

class SparseBucket final : public Bucket {
 public:
  // It packs into `spec.wire` if that is not null.
  SparseBucket(const BucketSpec& spec, const SparseContext& context, StepContext& step);

  std::byte* data() const override { return in_place() ? in_pool() : spec().wire; }
  std::size_t count() const override { return count_; }
  DataType type() const override {
    return step().conversion.narrows() ? step().conversion.wire_data_type() : DataType::F32;
  }
  ReduceOp op() const override {
    return step().conversion.narrows() ? ReduceOp::Sum : ReduceOp::Mean;
  }
  void deliver() override;

 private:
  void fill() override;
  void drain() override;
  void compact();
  void expand_in_place();
  void pack();
  void check_sums();

  bool in_place() const { return spec().wire == nullptr; }
  std::size_t elements(std::size_t i) const { return spec().gradients[i].count; }
  std::size_t sent(std::size_t i) const;  // elements
  float* slot(std::size_t i) const {
    return reinterpret_cast<float*>(step().pool + spec().layout.offset(i));
  }
  kernels::Addend addend(std::size_t i) const;

  SparseContext context_;
  std::size_t count_ = 0;
};

}  // namespace sluice::gradient
