// gradient_spec.h - a gradient tensor, as all ranks must know it.
#pragma once

#include <cstddef>
#include <string>

#include "sluice/types.h"

namespace sluice::gradient {

struct GradientSpec {
  std::string name;
  std::size_t count = 0;  // elements
  DataType type = DataType::F32;
  bool may_be_sparse = true;  // false: a bias or the like, always sent whole
  std::string strides = {};   // "": its elements lie in order
  bool operator==(const GradientSpec&) const = default;
};

}  // namespace sluice::gradient
