// training.h - trains a small network on synthetic data with one rank or several.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <optional>

#include "libtorch/parameters.h"
#include "sluice/communicator.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/torch/sync_batch_norm.h"
#include "tests/libtorch/parameters.h"

namespace sluice::libtorch {

inline constexpr int kBatch = 84;  // divisible by 1, 2, 3, 4 and 7
inline constexpr int kSteps = 10;

struct Setting {
  torch::ScalarType type = torch::kDouble;
  bool normalise = false;  // batch normalisation, synchronised if there are several ranks
  Clearing clearing = Clearing::Zero;
  GradientOptions options = {};
  // The first sample of rank r's part of the batch; by default parts are equal.
  std::function<int(Rank rank, int ranks)> begin = [](Rank rank, int ranks) {
    return kBatch * rank / ranks;
  };
};

// Two convolutions and a linear layer.
struct NetworkImpl : torch::nn::Module {
  NetworkImpl(const Setting& setting, const std::optional<Communicator>& group);
  torch::Tensor forward(torch::Tensor x);

  torch::nn::Conv2d first{nullptr};
  torch::nn::AnyModule norm;
  torch::nn::Conv2d second{nullptr};
  torch::nn::Linear last{nullptr};
};
TORCH_MODULE(Network);

// Sets parameters to values that depend only on their order and shapes.
void fill(torch::nn::Module& module, double scale = 0.2);

struct Samples {
  torch::Tensor inputs;
  torch::Tensor labels;
};
// Returns samples `begin` to `end` of the step's batch, which has kBatch samples.
Samples samples(torch::ScalarType type, int step, int begin, int end);

NamedTensors weights(const torch::nn::Module& module);
// Returns |ours - theirs| / |theirs|, over all tensors.
double relative_distance(const NamedTensors& ours, const NamedTensors& theirs);
bool same_bits(const NamedTensors& ours, const NamedTensors& theirs);

// Both return the weights after kSteps steps of SGD with momentum: on one rank with the whole
// batch, or on several ranks.
NamedTensors train_alone(const Setting& setting);
// Calls `after_step` with the model after every step.
NamedTensors train(const Setting& setting, Communicator& communicator,
                   const std::function<void(const torch::nn::Module&)>& after_step = {});

}  // namespace sluice::libtorch
