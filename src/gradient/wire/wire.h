// wire.h - the type and scale in which gradients are sent, and the effect of an overflow.
//
// f32 gradients are sent as f16 or bf16 if the options ask for it and either the ranks are on
// several nodes or `force_wire` is set. All other gradients are sent unchanged. Narrowed gradients
// are added in the wire type (each sum is computed in f32 and rounded once per hop). They are
// divided by the number of ranks only after they are widened, because dividing first would lose
// small values.
//
// The loss scale multiplies the loss, so all gradients in the pool carry it. On an f16 wire the
// wire scale replaces it: a gradient is sent as g times the wire scale, whatever the loss scale is.
// The wire scale is a power of two, and so is the loss scale if its initial value is one. All ranks
// compute the same scales from the same numbers. A scale belongs to a step: the result of a step
// that used an older scale does not lower the current scale.
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
  WireType wire = WireType::F32;  // for f32 gradients
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

// Returns the wire type of the options; F32 if all ranks share a node and `force_wire` is not set.
// Every rank must call it.
WireType agreed_wire(Communicator& communicator, const GradientOptions& options);

// Memory that the f32 gradients of a pool are sent from. Its offsets are the pool's offsets, halved
// if gradients are narrowed.
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

// Within these bounds, products and quotients of the two scales are normal f32 numbers.
inline constexpr double kSmallestScale = 0x1p-48;
inline constexpr double kLargestScale = 0x1p48;

class LossScale {
 public:
  explicit LossScale(const LossScaleOptions& options)
      : options_{options}, value_{options.enabled ? options.initial : 1} {}

  double value() const { return value_; }
  int clean_steps() const { return clean_steps_; }  // since the scale changed

  // Call it when a step that used the scale `used` is complete.
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

  // Call it when a step that used the scale `used` is complete. `largest`: the largest magnitude of
  // its sums in the wire type. The new scale would have put it into [2^11, 2^12): far from
  // overflow, and even farther from underflow.
  void update(float used, float largest);
  // Halves the scale if `used` is the current one.
  void lower(float used);
  void restore(float value) { value_ = value; }

 private:
  float value_ = 1;
};

inline constexpr std::size_t kNoGradient = std::numeric_limits<std::size_t>::max();

// Values of one rank's gradients in one step, before the sum.
struct OverflowCounts {
  std::uint64_t overflowed = 0;     // finite, but too large for the wire type
  std::uint64_t not_finite = 0;     // infinite or NaN before narrowing
  std::size_t first = kNoGradient;  // the first gradient that has such values
  std::uint64_t in_first = 0;       // the number of such values in that gradient

  std::uint64_t values() const { return overflowed + not_finite; }
  bool operator==(const OverflowCounts&) const = default;
};

// The first gradient whose sum is not finite, for each way of sending; the same at every rank.
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

// A pure function of numbers that are the same at all ranks. `ranks`: the counts of each rank. An
// infinity or NaN in a gradient lowers the loss scale. A finite value that is too large for f16, or
// a sum that overflows only in f16, lowers the wire scale. Allocates only if there is an overflow.
OverflowDecision decide_overflow(const std::vector<OverflowCounts>& ranks,
                                 const OverflowedSums& sums, const WireConversion& conversion,
                                 const std::vector<GradientSpec>& gradients);

}  // namespace sluice::gradient
