// wire.h - the types and scales in which the gradients of a step are sent, and what an overflow
// does.
//
// f32 gradients are sent as f16 or bf16 if the options ask for it and either the ranks are on
// several nodes or it is forced. All other gradients are sent unchanged. Narrowed gradients are
// added in the wire type (each sum in f32, rounded once a hop). They are divided by the number of
// ranks only after they are widened, because dividing first would lose small values.
//
// The loss scale multiplies the loss, so all gradients in the pool carry it. On an f16 wire the
// wire scale replaces it: a gradient is sent as g times the wire scale, whatever the loss scale is.
// Both are powers of two (the loss scale if it starts as one). All ranks compute the same scales
// from the same numbers. A scale belongs to a step: the result of a step with an older scale does
// not lower the current one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "gradient/layout.h"
#include "sluice/communicator.h"
#include "sluice/torch/gradient_options.h"

namespace sluice::gradient {

struct WireConversion {
  WireType wire = WireType::F32;  // of f32 gradients
  int ranks = 1;
  float wire_scale = 1;
  double loss_scale = 1;
  bool loss_scaled = false;

  bool narrows() const { return wire != WireType::F32; }
  DataType wire_data_type() const { return wire == WireType::F16 ? DataType::F16 : DataType::BF16; }
  // Multiplies a gradient of the pool before it is narrowed.
  float narrow_factor() const { return static_cast<float>(wire_scale / loss_scale); }
  // Multiplies a sum when it is widened.
  float widen_factor() const { return static_cast<float>(1 / (double{wire_scale} * ranks)); }
};

// The wire type of the options, or F32 if all ranks share a node. Every rank must call it.
WireType agreed_wire(Communicator& communicator, const GradientOptions& options);

// Memory from which all f32 gradients of a pool are sent. Offsets are those of the pool, halved if
// gradients are narrowed.
class WireBuffer {
 public:
  WireBuffer(Communicator& communicator, std::size_t pool_bytes, WireType wire)
      : divisor_{wire == WireType::F32 ? 1U : 2U},
        memory_{communicator.allocate(pool_bytes / divisor_)} {}
  std::byte* at(std::size_t pool_offset) const { return memory_.data() + pool_offset / divisor_; }

 private:
  std::size_t divisor_;
  Pool memory_;
};

// Products and quotients of both scales stay normal numbers of f32.
inline constexpr double kSmallestScale = 0x1p-48;
inline constexpr double kLargestScale = 0x1p48;

class LossScale {
 public:
  explicit LossScale(const LossScaleOptions& options)
      : options_{options}, value_{options.enabled ? options.initial : 1} {}

  double value() const { return value_; }
  int clean_steps() const { return clean_steps_; }  // since the scale changed

  // A step that used the scale `used` is complete.
  void update(double used, bool overflow);
  void restore(double value, int clean_steps) {
    value_ = value;
    clean_steps_ = clean_steps;
  }

 private:
  LossScaleOptions options_;
  double value_;
  int clean_steps_ = 0;
};

class WireScale {
 public:
  float value() const { return value_; }

  // A step that used the scale `used` is complete. `largest`: the largest magnitude of its sums in
  // the wire type. The new scale would have put it into [2^11, 2^12): far from overflow, farther
  // from underflow.
  void update(float used, float largest);
  void lower(float used);
  void restore(float value) { value_ = value; }

 private:
  float value_ = 1;
};

inline constexpr std::size_t kNoGradient = std::numeric_limits<std::size_t>::max();

// Values of one rank's gradients in one step, before the sum.
struct OverflowCounts {
  std::uint64_t overflowed = 0;     // finite, but too large for the wire type
  std::uint64_t not_finite = 0;     // before they were narrowed
  std::size_t first = kNoGradient;  // the first gradient that has such values
  std::uint64_t in_first = 0;       // such values in that gradient

  std::uint64_t values() const { return overflowed + not_finite; }
  bool operator==(const OverflowCounts&) const = default;
};

// The first gradient of each kind whose sum is not finite; the same at every rank.
struct OverflowedSums {
  std::size_t on_wire = kNoGradient;  // sent in the wire type
  std::size_t in_pool = kNoGradient;  // sent unchanged
  bool any() const { return on_wire != kNoGradient || in_pool != kNoGradient; }
};

struct OverflowDecision {
  FinishedStep finished;  // whether the step is skipped, and the warning
  bool lower_wire_scale = false;
  bool lower_loss_scale = false;
};

// A pure function of numbers that all ranks share. `ranks`: the counts of each rank. An infinity or
// NaN in a gradient lowers the loss scale. A value or a sum that is too large for f16 alone lowers
// the wire scale. Allocates only if there is an overflow.
OverflowDecision decide_overflow(const std::vector<OverflowCounts>& ranks,
                                 const OverflowedSums& sums, const WireConversion& conversion,
                                 const std::vector<GradientSpec>& gradients);

}  // namespace sluice::gradient
