// update.h - a parameter that an optimizer is about to move.
#pragma once

#include <cstddef>
#include <optional>

#include "sluice/torch/momentum_optimizer.h"
#include "sluice/types.h"

namespace sluice {

struct MomentumOptimizer::Move {
  std::size_t index = 0;  // among all parameters
  torch::Tensor parameter;
  torch::Tensor velocity;
  torch::Tensor gradient;
  Arrival arrival;
  double lr = 0;
  double weight_decay = 0;  // 0 where the gradient holds it already
  double scale = 1;         // of the gradient and its decay
  // Where all three fill CPU memory, element for element alike: their type.
  std::optional<DataType> flat;
};

namespace libtorch {

// A part of a tensor that fills its memory.
torch::Tensor memory_of(const torch::Tensor& tensor, const GradientPart& part);

}  // namespace libtorch

}  // namespace sluice
