// rmsprop_warm_up.h - RMSprop that turns into momentum SGD (Akiba, Suzuki and Fukuda 2017), for the
// first epochs with batches of tens of thousands.
//
// For a parameter w with g = gradient + wd w:
//
//   q = rms_decay q + (1 - rms_decay) g^2
//   u = m u + (a + (1 - a) rms_lr / lr / (sqrt(q) + eps)) g          w -= lr u
//
// a, the weight of SGD, rises with the epoch e. Its slope rises too, until it is 1 / period:
//
//   exp(2 (e - center) / period) / 2    e < center
//   1/2 + (e - center) / period         e < center + period / 2
//   1                                   later: the update is that of Sgd, and q is discarded
//
// Some copies of the paper print the slope 2 / period; then a would jump and exceed 1.
//
// While a < 1 it needs whole gradients; sparse gradients are an error.
#pragma once

#include <torch/types.h>

#include <vector>

#include "sluice/torch/momentum_optimizer.h"
#include "sluice/version.h"

namespace sluice {

struct RmspropWarmUpOptions {
  double lr = 0.1;  // must be positive while a < 1
  double momentum = 0.9;
  double weight_decay = 0;
  bool decay_one_dimensional = true;
  double rms_lr = 3e-4;
  double rms_decay = 0.99;
  double eps = 1e-8;
  double center = 10;  // epochs
  double period = 5;   // epochs
};

class SLUICE_API RmspropWarmUp final : public MomentumOptimizer {
 public:
  explicit RmspropWarmUp(std::vector<torch::Tensor> parameters,
                         const RmspropWarmUpOptions& options = {});

  // Sets the epoch of the next steps, also fractions; 0 at first. save() does not write it.
  void set_epoch(double epoch);

  // Returns a at an epoch.
  double sgd_part(double epoch) const;

 private:
  struct Impl;
  Impl& impl() const;
};

}  // namespace sluice
