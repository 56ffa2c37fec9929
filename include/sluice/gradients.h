// gradients.h - how gradients travel between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

// What travels between nodes for a gradient of type f32. Others travel as they are, and so do those
// of ranks that share a node's memory unless `force_wire` is set.
enum class WireType : std::uint8_t { F32, F16, BF16 };

// Sends only the chunks of a gradient whose mean absolute value over all ranks is largest; what is
// held back is added to the next step's gradient.
struct SparseOptions {
  double sparsity = 0;            // the part of all elements that is held back; 0: all are sent
  std::size_t chunk = 32 * 1024;  // elements
  std::int64_t dense_steps = 0;   // at first, in which all are sent
  std::int64_t ramp_steps = 0;    // over which sparsity then rises to its value
};

// The loss is multiplied by a factor before backward, so that small gradients survive in 16 bits;
// the factor is halved after an overflow, whose step all ranks skip, and doubled after
// `growth_steps` without one.
struct LossScaleOptions {
  bool enabled = false;
  double initial = 65536;
  int growth_steps = 2000;
};

struct GradientOptions {
  // A bucket is closed once it has this many bytes. Of no use with double buffering, where all is
  // ready when it is sent, and goes as one.
  std::size_t theta = std::size_t{4} << 20U;
  // Instead of theta: how many gradients each bucket has, in the order of backward.
  std::vector<int> groups;
  WireType wire = WireType::F32;
  bool force_wire = false;
  bool double_buffering = false;
  SparseOptions sparse;
  LossScaleOptions loss_scale;
  std::string algorithm;  // by name; empty: chosen by size
};

// Elements of a gradient that arrive as one.
struct GradientPart {
  std::size_t first = 0;
  std::size_t count = 0;
  std::uint32_t steps = 1;  // whose gradients it is the sum of; 1 unless it had been held back
  bool operator==(const GradientPart&) const = default;
};

// What a finish() came to.
struct FinishedStep {
  bool empty = false;    // with double buffering: there is no step before
  bool skipped = false;  // an overflow at some rank: the gradients are not to be used, at any rank
  std::string warning;   // of overflows, by rank and gradient; else empty
};

}  // namespace sluice
