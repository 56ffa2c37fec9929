#include "train/models/models.h"

#include <ATen/CPUGeneratorImpl.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "base/random.h"
#include "train/models/build.h"

namespace sluice::train {
namespace {

struct Maker {
  std::string_view name;
  std::shared_ptr<Model> (*make)(const recipe::ModelInput& input);
};

constexpr double kClassifierDeviation = 0.01;

constexpr std::array kMakers{
    Maker{"lenet", make_lenet},
    Maker{"smallconv", make_smallconv},
    Maker{"resnet20", make_resnet20},
    Maker{"resnet18",
          [](const recipe::ModelInput& input) {
            return make_resnet(input, {2, 2, 2, 2}, false);
          }},
    Maker{"resnet34",
          [](const recipe::ModelInput& input) {
            return make_resnet(input, {3, 4, 6, 3}, false);
          }},
    Maker{"resnet50",
          [](const recipe::ModelInput& input) {
            return make_resnet(input, {3, 4, 6, 3}, true);
          }},
    Maker{"alexnet", [](const recipe::ModelInput& input) { return make_alexnet(input, false); }},
    Maker{"alexnet_bn", [](const recipe::ModelInput& input) { return make_alexnet(input, true); }},
};

double ratio(std::int64_t part, std::int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// Draws weights from normal distributions that approximately preserve the variance of activations.
// A convolution without bias is followed by a batch norm: its variance is 2 / fan-out (He et al.
// 2015). With a bias it is 1 / fan-in, because pooling restores the variance that rectified units
// remove. The classifier starts with small weights, batch norms with scale one and shift zero.
void initialize(Model& model, std::uint64_t seed) {
  const torch::NoGradGuard no_grad;
  const std::vector<std::shared_ptr<torch::nn::Module>> modules = model.modules(false);
  std::uint64_t layer = 0;
  for (const std::shared_ptr<torch::nn::Module>& module : modules) {
    torch::Tensor weight;
    torch::Tensor bias;
    double variance = 0;
    if (const auto* const convolution = module->as<torch::nn::Conv2d>()) {
      weight = convolution->weight;
      bias = convolution->bias;
      variance = bias.defined() ? ratio(weight.size(0), weight.numel())
                                : 2 * ratio(weight.size(1), weight.numel());
    } else if (const auto* const linear = module->as<torch::nn::Linear>()) {
      weight = linear->weight;
      bias = linear->bias;
      variance = ratio(1, weight.size(1));
    } else {
      continue;
    }
    const bool classifier = module == modules.back();
    const at::Generator random = at::detail::createCPUGenerator(base::mixed({seed, layer++}));
    weight.normal_(0, classifier ? kClassifierDeviation : std::sqrt(variance), random);
    if (bias.defined()) bias.zero_();
  }
}

}  // namespace

void Model::seed_dropout(std::uint64_t) {}

torch::nn::Conv2d convolution(int in, int out, ConvolutionWindow window) {
  return torch::nn::Conv2d{torch::nn::Conv2dOptions(in, out, window.kernel)
                               .stride(window.stride)
                               .padding(window.padding)
                               .bias(window.bias)};
}

Result<std::shared_ptr<Model>> make_model(std::string_view name, const ModelOptions& options) {
  // model_table() fails for an unknown name, and for images that are too small.
  const Result<recipe::ModelTable> table = recipe::model_table(name, options.input);
  if (!table.ok()) return table.status();
  const auto* const maker =
      std::find_if(kMakers.begin(), kMakers.end(),
                   [&](const Maker& candidate) { return candidate.name == name; });
  assert(maker != kMakers.end());
  std::shared_ptr<Model> model = maker->make(table.value().input);
  initialize(*model, options.seed);
  if (options.zero_init_last_gamma) {
    const torch::NoGradGuard no_grad;
    for (torch::Tensor& gamma : last_gammas(*model)) gamma.zero_();
  }
  return model;
}

torch::Tensor smoothed_cross_entropy(const torch::Tensor& scores, const torch::Tensor& labels,
                                     double smoothing) {
  return torch::nn::functional::cross_entropy(
      scores, labels, torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(smoothing));
}

}  // namespace sluice::train
