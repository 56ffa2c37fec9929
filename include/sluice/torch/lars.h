// lars.h - layer-wise adaptive rates (You et al. 2017), for batches of tens of thousands.
//
// Each parameter of two or more dimensions has its gradient scaled by
//   s = eta ||w|| / (||g|| + wd ||w|| + eps),   1 where ||w|| or ||g|| is 0.
// Others, biases and scales, are neither scaled nor decayed. By default the rate is folded into the
// velocity, as in Fujitsu's record runs.
//
// Of a gradient that arrives in parts ||g|| is put together from what each part last brought,
// divided by the steps that it had been held back for.
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
  LearningRateMode rate_place = LearningRateMode::Folded;
  bool momentum_correction = false;  // as for Sgd
};

class Lars final : public MomentumOptimizer {
 public:
  explicit Lars(std::vector<torch::Tensor> parameters, const LarsOptions& options = {});
  ~Lars() override;

  Memory memory() const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  // What the parts of a gradient last brought.
  struct Brought;

  void scale(std::vector<Move>& moves) override;
  void scale_elsewhere(std::vector<Move>& moves);
  void set_scale(Move& move, double squared_weights, double squared_gradient) const;

  double eta_;
  double eps_;
  std::vector<Brought> brought_;  // by parameter
};

}  // namespace sluice
