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
  // In the mode Folded, rescales the velocity whenever the learning rate changes (Goyal et al.
  // 2017). The result is that of the mode Outside, and it is computed that way.
  bool momentum_correction = true;
};

// In the mode Outside it computes the same as torch::optim::SGD. Only Sgd can update a part of a
// parameter, as sparse gradients need.
class SLUICE_API Sgd final : public MomentumOptimizer {
 public:
  explicit Sgd(std::vector<torch::Tensor> parameters, const SgdOptions& options = {});
};

}  // namespace sluice
