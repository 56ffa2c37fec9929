// scales.h - the two factors that keep gradients within the range of 16 bits.
//
// The loss scale multiplies the loss, so all gradients in the pool carry it; the wire scale stands
// in for it on an f16 wire: a gradient travels as g times the wire scale, whatever the loss scale
// is. Both are powers of two (the loss scale if it starts as one), follow from what all ranks have
// seen alike, and belong to a step: what is learnt from a step that carried another scale than the
// present one does not lower the present one.
#pragma once

#include "sluice/gradients.h"

namespace sluice::gradient {

// Far enough from the ends of f32 that products and quotients of both scales stay normal.
inline constexpr double kSmallestScale = 0x1p-48;
inline constexpr double kLargestScale = 0x1p48;

class LossScale {
 public:
  explicit LossScale(const LossScaleOptions& options)
      : options_{options}, value_{options.enabled ? options.initial : 1} {}

  double value() const { return value_; }
  int clean_steps() const { return clean_steps_; }  // since the scale is what it is

  // A step that carried the scale `carried` is over.
  void update(double carried, bool overflow);
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

  // A step that carried `carried` is over. From the largest magnitude of its sums, as they
  // travelled, follows the scale with which that one would have been in [2^11, 2^12): far from
  // overflow, farther from underflow.
  void update(float carried, float largest);
  void lower(float carried);
  void restore(float value) { value_ = value; }

 private:
  float value_ = 1;
};

}  // namespace sluice::gradient
