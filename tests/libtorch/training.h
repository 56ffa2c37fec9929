// training.h - a small network on made-up data, trained by one rank or by many.
#pragma once

#include <torch/torch.h>

#include <functional>
#include <optional>

#include "libtorch/weights.h"
#include "sluice/communicator.h"
#include "sluice/gradients.h"
#include "sluice/torch/sync_batch_norm.h"
#include "tests/libtorch/parameters.h"

namespace sluice::libtorch {

inline constexpr int kBatch = 84;  // divisible by 1, 2, 3, 4 and 7
inline constexpr int kSteps = 10;

struct Setting {
  torch::ScalarType type = torch::kDouble;
  bool normalise = false;  // over the batch, synchronised where there are several ranks
  Clearing clearing = Clearing::Zero;
  GradientOptions options = {};
  // Where rank r's part of the batch begins; by default parts are equal.
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

// Values that depend on name and shape alone.
void fill(torch::nn::Module& module, double scale = 0.2);

struct Samples {
  torch::Tensor inputs;
  torch::Tensor labels;
};
// Of the step's batch of kBatch.
Samples samples(torch::ScalarType type, int step, int begin, int end);

NamedTensors weights(const torch::nn::Module& module);
// |ours - theirs| / |theirs| of all together.
double relative_distance(const NamedTensors& ours, const NamedTensors& theirs);
bool same_bits(const NamedTensors& ours, const NamedTensors& theirs);

// The weights after kSteps of stochastic gradient descent with momentum.
NamedTensors train_alone(const Setting& setting);
// `after_step` sees the model after every step.
NamedTensors train(const Setting& setting, Communicator& communicator,
                   const std::function<void(const torch::nn::Module&)>& after_step = {});

}  // namespace sluice::libtorch
