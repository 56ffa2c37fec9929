// sgd.h - stochastic gradient descent with momentum.
#pragma once

#include <torch/types.h>

#include <vector>

#include "sluice/torch/momentum_optimizer.h"
#include "sluice/version.h"

namespace sluice {

struct SgdOptions {
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  bool decay_one_dimensional = true;  // false: no weight decay for biases and scales
  LearningRateMode rate_place = LearningRateMode::Outside;
  // With the folded learning rate, rescales the velocity whenever the rate changes (Goyal et al.
  // 2017). That equals the mode Outside in other units, and is computed that way.
  bool momentum_correction = true;
};

// With the learning rate outside it equals torch::optim::SGD, which cannot update parameters in
// part.
class SLUICE_API Sgd final : public MomentumOptimizer {
 public:
  explicit Sgd(std::vector<torch::Tensor> parameters, const SgdOptions& options = {});
};

}  // namespace sluice
