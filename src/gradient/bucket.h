// bucket.h - one bucket of a step: what is done to it before and after its sum.
//
// Thread-safety: load() and unload() run on the progress thread, one at a time for all buckets of a
// step, and what they leave in the Step is the caller's once the step has been waited for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/errand.h"
#include "gradient/faults.h"
#include "gradient/layout.h"
#include "gradient/timeline.h"
#include "gradient/wire.h"

namespace sluice {

// What the buckets of a step share.
struct Step {
  std::byte* pool = nullptr;
  Passage passage;
  Timeline* timeline = nullptr;

  // What they come upon: at this rank, in the sums, and the largest sum that was narrowed to f16.
  Faults faults;
  SumFaults sums;
  float largest = 0;
};

class Bucket final : public Errand {
 public:
  struct Place {
    const std::vector<GradientSpec>& gradients;
    const PoolLayout& layout;
    BucketRange range;
    std::size_t number = 0;
    std::byte* wire = nullptr;  // where it travels; null: in the pool, as it is
  };
  // `step` and what `place` refers to must outlive it.
  Bucket(const Place& place, Step& step);

  // As it travels.
  std::byte* data() const { return narrowed() ? place_.wire : in_pool(); }
  std::size_t count() const { return bytes_ / size_of(place_.range.type); }
  DataType type() const { return narrowed() ? step_->passage.wire_data_type() : place_.range.type; }
  ReduceOp op() const { return narrowed() ? ReduceOp::Sum : ReduceOp::Mean; }

  // Its last gradient is there. Only the first call of a step counts.
  void set_ready();

  void load() override;
  void unload() override;

 private:
  bool narrowed() const { return place_.wire != nullptr; }
  std::byte* in_pool() const { return step_->pool + begin_; }
  float* floats() const { return reinterpret_cast<float*>(in_pool()); }
  void note_faults(std::uint64_t overflowed, std::uint64_t not_finite);
  void widen_sums();
  void unscale_means();
  struct Culprit {
    std::size_t gradient = kNoGradient;
    std::uint64_t values = 0;
  };
  Culprit first_not_finite() const;
  // Adds an event that ends now to the timeline; returns when that is.
  std::int64_t tell(const char* name, std::int64_t begin_ns) const;

  static constexpr std::int64_t kNever = -1;
  Place place_;
  Step* step_;
  std::size_t begin_;  // in the pool
  std::size_t bytes_;
  std::int64_t last_ns_ = kNever;  // when it was ready, or its last event ended
};

}  // namespace sluice
