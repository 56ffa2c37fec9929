// dense_bucket.h - a bucket that sends all of its gradients, as they lie in the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gradient/bucket.h"
#include "gradient/layout.h"

namespace sluice::gradient {

class DenseBucket final : public Bucket {
 public:
  struct Place {
    const std::vector<GradientSpec>& gradients;
    const PoolLayout& layout;
    buckets::BucketRange range;
    std::size_t number = 0;
    std::byte* wire = nullptr;  // where it travels; null: in the pool, as it is
  };
  // `step` and what `place` refers to must outlive it.
  DenseBucket(const Place& place, StepContext& step);

  std::byte* data() const override { return narrowed() ? place_.wire : in_pool(); }
  std::size_t count() const override { return bytes_ / size_of(place_.range.type); }
  DataType type() const override {
    return narrowed() ? step().passage.wire_data_type() : place_.range.type;
  }
  ReduceOp op() const override { return narrowed() ? ReduceOp::Sum : ReduceOp::Mean; }

 private:
  void fill() override;
  void drain() override;
  bool narrowed() const { return place_.wire != nullptr; }
  std::byte* in_pool() const { return step().pool + begin_; }
  float* floats() const { return reinterpret_cast<float*>(in_pool()); }
  void note_faults(std::uint64_t overflowed, std::uint64_t not_finite);
  void widen_sums();
  void unscale_means();
  struct Culprit {
    std::size_t gradient = kNoGradient;
    std::uint64_t values = 0;
  };
  Culprit first_not_finite() const;

  Place place_;
  std::size_t begin_;  // in the pool
  std::size_t bytes_;
};

}  // namespace sluice::gradient
