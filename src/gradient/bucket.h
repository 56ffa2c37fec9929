// bucket.h - one bucket of a step: load() prepares the data to send, unload() processes the sum.
//
// Thread-safety: load() and unload() run on the progress thread, one at a time for all buckets of a
// step. Their results in StepContext belong to the caller after InFlightStep::wait().
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/internal_collectives.h"
#include "gradient/layout.h"
#include "gradient/wire/wire.h"
#include "sluice/analysis/timeline.h"

namespace sluice::gradient {

// The data that all buckets of a step share.
struct StepContext {
  std::byte* pool = nullptr;
  WireConversion conversion;
  Timeline* timeline = nullptr;
  std::span<const float> norms;  // this rank's norms for the trailer, by gradient chunk

  // Results of the buckets.
  OverflowCounts counts;  // of this rank's gradients
  OverflowedSums sums;
  float largest = 0;  // largest magnitude of the sums in f16
};

struct BucketSpec {
  const std::vector<GradientSpec>& gradients;
  const PoolLayout& layout;
  buckets::BucketRange range;
  std::size_t number = 0;
  std::byte* wire = nullptr;  // memory that it is sent from; null: the pool
};

class Bucket : public engine::ProgressHooks {
 public:
  // The data that is sent.
  virtual std::byte* data() const = 0;
  virtual std::size_t count() const = 0;
  virtual DataType type() const = 0;
  virtual ReduceOp op() const = 0;

  // Call it when the last gradient is ready. Only the first call of a step counts.
  void set_ready();
  void load() final;
  void unload() final;
  // Replaces load() and unload() for a bucket that sends nothing.
  void process_unsent();
  // Called after wait(), unless the step is skipped. Runs on the caller's thread.
  virtual void deliver() {}

 protected:
  // `step` and everything that `spec` refers to must outlive it.
  Bucket(const BucketSpec& spec, StepContext& step) : spec_{spec}, step_{&step} {}

  StepContext& step() const { return *step_; }
  const BucketSpec& spec() const { return spec_; }
  // The number of the k-th gradient.
  std::size_t gradient(std::size_t k) const { return spec_.layout.order()[spec_.range.first + k]; }
  std::byte* in_pool() const { return step_->pool + spec_.layout.begin(spec_.range.first); }

 private:
  virtual void fill() = 0;   // writes data() before the all_reduce
  virtual void drain() = 0;  // reads data() after it
  // Adds an event that ends now to the timeline, and returns the time.
  std::int64_t record(const char* name, std::int64_t begin_ns) const;

  static constexpr std::int64_t kNever = -1;
  BucketSpec spec_;
  StepContext* step_;
  std::int64_t last_ns_ = kNever;  // the time when it became ready, or when its last event ended
};

// A bucket that sends all its gradients, in the order of the pool.
class DenseBucket final : public Bucket {
 public:
  // Gradients are narrowed if `spec.wire` is not null.
  DenseBucket(const BucketSpec& spec, StepContext& step);

  std::byte* data() const override { return narrowed() ? spec().wire : in_pool(); }
  std::size_t count() const override { return bytes_ / size_of(spec().range.type); }
  DataType type() const override {
    return narrowed() ? step().conversion.wire_data_type() : spec().range.type;
  }
  ReduceOp op() const override { return narrowed() ? ReduceOp::Sum : ReduceOp::Mean; }

 private:
  void fill() override;
  void drain() override;
  bool narrowed() const { return spec().wire != nullptr; }
  float* floats() const { return reinterpret_cast<float*>(in_pool()); }
  void count_overflow(std::uint64_t overflowed, std::uint64_t not_finite);
  void widen_sums();
  void unscale_means();
  // The first gradient with values that are not finite, and their number.
  struct FirstOverflow {
    std::size_t gradient = kNoGradient;
    std::uint64_t values = 0;
  };
  FirstOverflow first_overflow() const;

  std::size_t bytes_;  // in the pool
};

}  // namespace sluice::gradient
