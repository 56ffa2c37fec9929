#include "train/loop/make_optimizer.h"

#include <utility>

#include "sluice/torch/lars.h"
#include "sluice/torch/rmsprop_warm_up.h"
#include "sluice/torch/sgd.h"

namespace sluice::train {

std::unique_ptr<MomentumOptimizer> make_optimizer(const recipe::Recipe& recipe,
                                                  std::vector<torch::Tensor> parameters) {
  if (recipe.optimizer == recipe::OptimizerKind::Lars) {
    return std::make_unique<Lars>(std::move(parameters),
                                  LarsOptions{.lr = recipe.rate,
                                              .momentum = recipe.momentum,
                                              .nesterov = recipe.nesterov,
                                              .weight_decay = recipe.weight_decay,
                                              .eta = recipe.lars_eta,
                                              .eps = recipe.lars_eps,
                                              .rate_place = recipe.rate_place,
                                              .momentum_correction = recipe.momentum_correction});
  }
  if (recipe.optimizer == recipe::OptimizerKind::RmspropWarmUp) {
    return std::make_unique<RmspropWarmUp>(
        std::move(parameters),
        RmspropWarmUpOptions{.lr = recipe.rate,
                             .momentum = recipe.momentum,
                             .weight_decay = recipe.weight_decay,
                             .decay_one_dimensional = recipe.decay_one_dimensional,
                             .rms_lr = recipe.rms_rate,
                             .rms_decay = recipe.rms_decay,
                             .eps = recipe.rms_eps,
                             .center = recipe.rms_center,
                             .period = recipe.rms_period});
  }
  return std::make_unique<Sgd>(std::move(parameters),
                               SgdOptions{.lr = recipe.rate,
                                          .momentum = recipe.momentum,
                                          .nesterov = recipe.nesterov,
                                          .weight_decay = recipe.weight_decay,
                                          .decay_one_dimensional = recipe.decay_one_dimensional,
                                          .rate_place = recipe.rate_place,
                                          .momentum_correction = recipe.momentum_correction});
}

GradientOptions gradient_options(const recipe::Recipe& recipe, const recipe::EpochTable& plan) {
  const std::int64_t dense = plan.step_at(recipe.sparse_dense_epochs);
  const std::int64_t ramped = plan.step_at(recipe.sparse_dense_epochs + recipe.sparse_ramp_epochs);
  return {.theta = recipe.theta,
          .groups = recipe.groups,
          .wire = recipe.wire,
          .double_buffering = recipe.double_buffering,
          .sparse = {.sparsity = recipe.sparsity,
                     .chunk = recipe.sparse_chunk,
                     .dense_steps = dense,
                     .ramp_steps = ramped - dense},
          .loss_scale = {.enabled = recipe.loss_scaling},
          .algorithm = recipe.algorithm};
}

}  // namespace sluice::train
