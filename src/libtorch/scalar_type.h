// scalar_type.h - libtorch's element types as ours.
#pragma once

#include <torch/torch.h>

#include <optional>

#include "sluice/types.h"

namespace sluice::libtorch {

// Nothing: collectives do not know that type.
std::optional<DataType> data_type(torch::ScalarType type);

}  // namespace sluice::libtorch
