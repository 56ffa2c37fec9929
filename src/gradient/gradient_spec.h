// gradient_spec.h - a gradient tensor, as all ranks must know it, and a part of one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "sluice/types.h"

namespace sluice {

struct GradientSpec {
  std::string name;
  std::size_t count = 0;  // elements
  DataType type = DataType::F32;
  bool may_be_sparse = true;  // false: a bias or the like, always sent whole
  bool operator==(const GradientSpec&) const = default;
};

// Elements of a gradient that arrive as one.
struct GradientPart {
  std::size_t first = 0;
  std::size_t count = 0;
  std::uint32_t steps = 1;  // whose gradients it is the sum of; 1 unless it had been held back
  bool operator==(const GradientPart&) const = default;
};

}  // namespace sluice
