// rmsprop_warm_up.h - RMSprop that turns into momentum SGD (Akiba, Suzuki and Fukuda 2017), for the
// first epochs with batches of tens of thousands.
//
// Of a parameter w, with g its gradient and decay, g = gradient + wd w:
//
//   q = rms_decay q + (1 - rms_decay) g^2
//   u = m u + (a + (1 - a) rms_lr / lr / (sqrt(q) + eps)) g          w -= lr u
//
// a, the part that is SGD, rises with the epoch e, and so does its slope until it is 1 / period:
//
//   exp(2 (e - center) / period) / 2    e < center
//   1/2 + (e - center) / period         e < center + period / 2
//   1                                   then: it is Sgd, and q is forgotten
//
// Copies of the paper in use have the slope 2 / period, with which a would jump and exceed 1.
//
// It needs whole gradients: sparse ones are an error until it is Sgd.
#pragma once

#include <torch/types.h>

#include <vector>

#include "sluice/torch/momentum_optimizer.h"

namespace sluice {

struct RmspropWarmUpOptions {
  double lr = 0.1;  // more than 0 until it is Sgd
  double momentum = 0.9;
  double weight_decay = 0;
  bool decay_one_dimensional = true;
  double rms_lr = 3e-4;
  double rms_decay = 0.99;
  double eps = 1e-8;
  double center = 10;  // epochs
  double period = 5;   // epochs
};

class RmspropWarmUp final : public MomentumOptimizer {
 public:
  explicit RmspropWarmUp(std::vector<torch::Tensor> parameters,
                         const RmspropWarmUpOptions& options = {});

  // Of the next steps, as a fraction; 0 at first. It is not saved.
  void set_epoch(double epoch) { epoch_ = epoch; }

  // a, at that epoch.
  double sgd_part(double epoch) const;

  Memory memory() const override;
  void load(torch::serialize::InputArchive& archive) override;

 private:
  void scale(std::vector<Move>& moves) override;
  void scale(Move& move, double sgd);

  RmspropWarmUpOptions options_;
  double epoch_ = 0;
  std::vector<torch::Tensor> squares_;    // q, by parameter
  std::vector<torch::Tensor> gradients_;  // scaled, likewise
};

}  // namespace sluice
