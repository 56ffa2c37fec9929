// models.h - builds the networks of recipe/models.h, by the same names, with libtorch; their loss.
//
// The weights and the dropout of a model depend only on seeds: the same seed gives the same bits at
// every rank. They never use the process-wide generator of torch, because ranks that are threads of
// one process would share it.
#pragma once

#include <torch/nn/module.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "recipe/models.h"
#include "sluice/status.h"

namespace sluice::train {

class Model : public torch::nn::Module {
 public:
  // Takes images (n, channels, image, image), returns one score for each class (n, classes).
  virtual torch::Tensor forward(const torch::Tensor& images) = 0;

  // Seeds the dropout of the next forward. The default does nothing, for models without dropout.
  virtual void seed_dropout(std::uint64_t seed);
};

struct ModelOptions {
  recipe::ModelInput input;
  std::uint64_t seed = 0;
  // The last batch norm of every residual block starts with scale zero, so the block starts as its
  // shortcut (Goyal et al. 2017).
  bool zero_init_last_gamma = false;
};

// Parameters are f32, on the CPU.
Result<std::shared_ptr<Model>> make_model(std::string_view name, const ModelOptions& options = {});

// The mean cross entropy of scores (n, classes) against labels (n). The target distribution gives
// every class smoothing / classes, and the labelled one 1 - smoothing on top.
torch::Tensor smoothed_cross_entropy(const torch::Tensor& scores, const torch::Tensor& labels,
                                     double smoothing);

}  // namespace sluice::train
