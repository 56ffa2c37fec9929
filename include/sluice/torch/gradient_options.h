// gradient_options.h - how gradients travel between ranks. Needs the standard library only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// The type in which f32 gradients travel between nodes. Gradients of other types travel unchanged.
// Ranks that share a node's memory exchange f32 unless `force_wire` is set.
enum class WireType : std::uint8_t { F32, F16, BF16 };

// A step sends only the gradient chunks with the largest mean absolute value over all ranks. Each
// rank keeps the other chunks in its residual and adds them to the next step's gradient.
struct SparseOptions {
  double sparsity = 0;            // the part of all elements that is not sent; 0: dense steps
  std::size_t chunk = 32 * 1024;  // elements of a gradient chunk
  std::int64_t dense_steps = 0;   // the first steps send everything
  std::int64_t ramp_steps = 0;    // then sparsity rises to its value over these steps
};

// The loss is multiplied by a scale before backward, so that small gradients survive in 16 bits.
// After an overflow all ranks skip the step and the scale is halved. After `growth_steps` steps
// without an overflow the scale is doubled.
struct LossScaleOptions {
  bool enabled = false;
  double initial = 65536;
  int growth_steps = 2000;
};

struct GradientOptions {
  // A bucket closes once it has this many bytes. Ignored with double buffering, which sends all
  // gradients as one bucket.
  std::size_t theta = std::size_t{4} << 20U;
  // Replaces theta: the number of gradients in each bucket, in the order of backward.
  std::vector<int> groups;
  WireType wire = WireType::F32;
  bool force_wire = false;
  bool double_buffering = false;
  SparseOptions sparse;
  LossScaleOptions loss_scale;
  std::string algorithm;  // the name of an all_reduce algorithm; empty: chosen by size
};

// The result of a training step's communication.
struct FinishedStep {
  bool empty = false;    // double buffering: there is no step before this one
  bool skipped = false;  // a rank had an overflow: no rank may use the gradients
  std::string warning;   // names ranks and gradients with an overflow; empty: no overflow
};

}  // namespace sluice
