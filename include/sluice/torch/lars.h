// lars.h - layer-wise adaptive learning rates (You et al. 2017), for batches of tens of thousands.
//
// The gradient of each parameter of two or more dimensions is scaled by
//   s = eta ||w|| / (||g|| + wd ||w|| + eps),   1 if ||w|| or ||g|| is 0.
// Other parameters (biases and scales) have no scaling and no weight decay. By default the learning
// rate is folded into the velocity, as in Fujitsu's record runs.
//
// With sparse gradients, ||g|| is the norm over the latest received value of each gradient chunk; a
// value that sums up several steps is divided by their number.
#pragma once

#include <torch/types.h>

#include <vector>

#include "sluice/torch/momentum_optimizer.h"
#include "sluice/version.h"

namespace sluice {

struct LarsOptions {
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 5e-5;
  double eta = 0.001;
  double eps = 1e-9;
  LearningRateMode rate_place = LearningRateMode::Folded;
  bool momentum_correction = false;  // as in SgdOptions
};

class SLUICE_API Lars final : public MomentumOptimizer {
 public:
  explicit Lars(std::vector<torch::Tensor> parameters, const LarsOptions& options = {});

 private:
  struct Impl;
};

}  // namespace sluice
