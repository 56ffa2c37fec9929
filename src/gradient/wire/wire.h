// wire.h - how the gradients of a step travel, and the memory that narrowed ones travel in.
//
// f32 gradients go as f16 or bf16 where that is asked for and the ranks are on several nodes, or
// where it is forced; all others go as they are. Narrowed gradients are added in the wire type
// (each sum in f32, rounded once a hop) and divided by the number of ranks only after they have
// been widened: dividing first would lose small ones.
//
// scales.h - the two factors that keep gradients within the range of 16 bits.
//
// The loss scale multiplies the loss, so all gradients in the pool carry it; the wire scale stands
// in for it on an f16 wire: a gradient travels as g times the wire scale, whatever the loss scale
// is. Both are powers of two (the loss scale if it starts as one), follow from what all ranks have
// seen alike, and belong to a step: what is learnt from a step that carried another scale than the
// present one does not lower the present one.
#pragma once

#include <cstddef>

#include "sluice/communicator.h"
#include "sluice/gradients.h"

namespace sluice::gradient {

struct WireConversion {
  WireType wire = WireType::F32;  // of f32 gradients
  int ranks = 1;
  float wire_scale = 1;
  double loss_scale = 1;
  bool loss_scaled = false;

  bool narrows() const { return wire != WireType::F32; }
  DataType wire_data_type() const { return wire == WireType::F16 ? DataType::F16 : DataType::BF16; }
  // What a gradient in the pool is multiplied by before it is narrowed: it travels as g times the
  // wire scale, whatever the loss scale.
  float factor_there() const { return static_cast<float>(wire_scale / loss_scale); }
  // What a sum is multiplied by when it is widened.
  float factor_back() const { return static_cast<float>(1 / (double{wire_scale} * ranks)); }
};

// The wire type that is asked for, unless all ranks share a node. Every rank must call it.
WireType agreed_wire(Communicator& communicator, const GradientOptions& options);

// Room for all f32 gradients of a pool, as they travel: each where it lies in the pool, at half the
// offset if it is narrowed.
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
