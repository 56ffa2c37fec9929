// models.h - the networks of recipe/models.h, by the same names, built with libtorch.
//
// A model's weights and its dropout depend on seeds alone, never on torch's process-wide generator,
// which ranks that are threads of one process would share: the same seed is the same bits at every
// rank.
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
  // Images (n, channels, image, image) to one score a class (n, classes).
  virtual torch::Tensor forward(const torch::Tensor& images) = 0;

  // What the next forward drops out is a function of this number. Other models have no dropout.
  virtual void seed_dropout(std::uint64_t seed);
};

struct ModelOptions {
  recipe::ModelInput input;
  std::uint64_t seed = 0;
  // Residual networks: the last scale of every block starts at zero, so that a block starts as its
  // shortcut (Goyal et al. 2017).
  bool zero_init_last_gamma = false;
};

// Parameters in f32 on the CPU.
Result<std::shared_ptr<Model>> make_model(std::string_view name, const ModelOptions& options = {});

}  // namespace sluice::train
