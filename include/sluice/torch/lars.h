// lars.h - layer-wise adaptive rates (You et al. 2017), for batches of tens of thousands.
//
// Each parameter of two or more dimensions has its gradient scaled by
//   s = eta ||w|| / (||g|| + wd ||w|| + eps),   1 where ||w|| or ||g|| is 0.
// Others, biases and scales, are neither scaled nor decayed. The rate is by default in the
// velocity, as in Fujitsu's record runs.
#pragma once

#include <torch/types.h>

#include <vector>

#include "sluice/torch/momentum_optimizer.h"

namespace sluice {

struct LarsOptions {
  double lr = 0.1;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 5e-5;
  double eta = 0.001;
  double eps = 1e-9;
  RatePlace rate_place = RatePlace::Folded;
  bool momentum_correction = false;  // as for Sgd
};

class Lars final : public MomentumOptimizer {
 public:
  explicit Lars(std::vector<torch::Tensor> parameters, const LarsOptions& options = {});

 private:
  void scale(std::vector<Move>& moves) override;
  void scale_elsewhere(std::vector<Move>& moves) const;
  void set_scale(Move& move, double weights_norm, double gradient_norm) const;

  double eta_;
  double eps_;
};

}  // namespace sluice
