// make_optimizer.h - what a recipe moves weights with, and how it sends gradients.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "recipe/epoch_table.h"
#include "recipe/recipe.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/torch/momentum_optimizer.h"

namespace sluice::train {

std::unique_ptr<MomentumOptimizer> make_optimizer(const recipe::Recipe& recipe,
                                                  std::vector<torch::Tensor> parameters);

GradientOptions gradient_options(const recipe::Recipe& recipe, const recipe::EpochTable& plan);

}  // namespace sluice::train
