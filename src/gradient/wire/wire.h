// wire.h - how the gradients of a step travel, and the memory that narrowed ones travel in.
//
// f32 gradients go as f16 or bf16 where that is asked for and the ranks are on several nodes, or
// where it is forced; all others go as they are. Narrowed gradients are added in the wire type
// (each sum in f32, rounded once a hop) and divided by the number of ranks only after they have
// been widened: dividing first would lose small ones.
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

}  // namespace sluice::gradient
