// bucket.h - one bucket of a step: what is done to it before and after its sum.
//
// Thread-safety: load() and unload() run on the progress thread, one at a time for all buckets of a
// step, and what they leave in the Step is the caller's once the step has been waited for.
//
// dense_bucket.h - a bucket that sends all of its gradients, as they lie in the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/internal_collectives.h"
#include "gradient/layout.h"
#include "gradient/verdict.h"
#include "gradient/wire/wire.h"
#include "sluice/analysis/timeline.h"

namespace sluice::gradient {

// What the buckets of a step share.
struct StepContext {
  std::byte* pool = nullptr;
  WireConversion passage;
  Timeline* timeline = nullptr;
  std::span<const float> norms;  // of what this rank holds back, by chunk, for the tail

  // What they come upon: at this rank, in the sums, and the largest sum that was narrowed to f16.
  Faults faults;
  SumFaults sums;
  float largest = 0;
};

class Bucket : public engine::ProgressHooks {
 public:
  // As it travels.
  virtual std::byte* data() const = 0;
  virtual std::size_t count() const = 0;
  virtual DataType type() const = 0;
  virtual ReduceOp op() const = 0;

  // Its last gradient is there. Only the first call of a step counts.
  void set_ready();
  void load() final;
  void unload() final;
  // Of a bucket that sends nothing, and so is never loaded, in place of both.
  void pass_by();
  // The step has been waited for and is not skipped. On the caller's thread.
  virtual void deliver() {}

 protected:
  // `step` must outlive it.
  Bucket(std::size_t number, StepContext& step) : number_{number}, step_{&step} {}
  StepContext& step() const { return *step_; }

 private:
  // Brings what is to be sent to data(), and brings home what has become of it.
  virtual void fill() = 0;
  virtual void drain() = 0;
  // Adds an event that ends now to the timeline; returns when that is.
  std::int64_t tell(const char* name, std::int64_t begin_ns) const;

  static constexpr std::int64_t kNever = -1;
  std::size_t number_;
  StepContext* step_;
  std::int64_t last_ns_ = kNever;  // when it was ready, or its last event ended
};

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
