// sgd.h - stochastic gradient descent with momentum.
#pragma once

#include <torch/types.h>

#include <vector>

#include "sluice/torch/momentum_optimizer.h"

namespace sluice {

struct SgdOptions {
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_one_dimensional = true;  // false: biases and scales are not decayed
  LearningRateMode rate_place = LearningRateMode::Outside;
  // With the rate folded in: the velocity follows every change of the rate (Goyal et al.
  // 2017). That is the rate outside in other units, and is computed so.
  bool momentum_correction = true;
};

// With the rate outside it is torch::optim::SGD, which can only update whole parameters.
class Sgd final : public MomentumOptimizer {
 public:
  explicit Sgd(std::vector<torch::Tensor> parameters, const SgdOptions& options = {});
};

}  // namespace sluice
