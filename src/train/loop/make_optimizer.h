// make_optimizer.h - what a recipe moves weights with, and how it sends gradients.
#pragma once

#include <torch/types.h>

#include <memory>
#include <vector>

#include "recipe/recipe.h"
#include "recipe/training_plan.h"
#include "sluice/gradients.h"
#include "sluice/torch/momentum_optimizer.h"

namespace sluice {

std::unique_ptr<MomentumOptimizer> make_optimizer(const Recipe& recipe,
                                                  std::vector<torch::Tensor> parameters);

GradientOptions gradient_options(const Recipe& recipe, const TrainingPlan& plan);

}  // namespace sluice
