// alexnet.cc - AlexNet in a single tower (Krizhevsky 2014, "One weird trick"); for large batches, a
// variant with batch norms after its convolutions.
#include <ATen/Context.h>
#include <torch/nn/modules/linear.h>

#include <mutex>

#include "base/format.h"
#include "train/models/build.h"

namespace sluice::train {
namespace {

constexpr double kDropout = 0.5;
constexpr int kSide = 6;  // height and width of the input of fc6
constexpr int kHidden = 4096;

class AlexNet final : public Model {
 public:
  AlexNet(const recipe::ModelInput& input, bool batch_norm) {
    add(input.channels, 64, {11, 4, 2, true}, batch_norm, true);
    add(64, 192, {5, 1, 2, true}, batch_norm, true);
    add(192, 384, {3, 1, 1, true}, batch_norm, false);
    add(384, 256, {3, 1, 1, true}, batch_norm, false);
    add(256, 256, {3, 1, 1, true}, batch_norm, true);
    fc6_ = register_module("fc6", torch::nn::Linear{256 * kSide * kSide, kHidden});
    fc7_ = register_module("fc7", torch::nn::Linear{kHidden, kHidden});
    fc8_ = register_module("fc8", torch::nn::Linear{kHidden, input.classes});
  }

  torch::Tensor forward(const torch::Tensor& images) override {
    torch::Tensor x = images;
    for (Stage& stage : stages_) {
      x = stage.conv->forward(x);
      if (!stage.bn.is_empty()) x = stage.bn->forward(x);
      x = x.relu_();
      if (stage.pool) x = torch::max_pool2d(x, 3, 2);
    }
    x = torch::adaptive_avg_pool2d(x, {kSide, kSide}).flatten(1);
    x = fc6_->forward(dropped_out(x)).relu_();
    x = fc7_->forward(dropped_out(x)).relu_();
    return fc8_->forward(x);
  }

  void seed_dropout(std::uint64_t seed) override {
    seed_ = seed;
    if (random_.defined()) random_.set_current_seed(seed);
  }

 private:
  struct Stage {
    torch::nn::Conv2d conv;
    BatchNorm bn;
    bool pool;
  };

  void add(int in, int out, ConvolutionWindow window, bool batch_norm, bool pool) {
    const std::size_t number = stages_.size() + 1;
    Stage stage{register_module(base::format("conv{}", number), convolution(in, out, window)),
                nullptr, pool};
    if (batch_norm) {
      stage.bn = register_module(base::format("bn{}", number), BatchNorm{out});
    }
    stages_.push_back(std::move(stage));
  }

  torch::Tensor dropped_out(const torch::Tensor& x) {
    if (!is_training()) return x;
    if (!random_.defined() || random_.device() != x.device()) {
      // A generator can be created only with the headers of its device, so clone the default one.
      at::Generator shared = at::globalContext().defaultGenerator(x.device());
      const std::lock_guard lock{shared.mutex()};
      random_ = shared.clone();
      random_.set_current_seed(seed_);
    }
    return x * torch::empty_like(x).bernoulli_(1 - kDropout, random_).mul_(1 / (1 - kDropout));
  }

  std::vector<Stage> stages_;
  torch::nn::Linear fc6_{nullptr};
  torch::nn::Linear fc7_{nullptr};
  torch::nn::Linear fc8_{nullptr};
  std::uint64_t seed_ = 0;
  at::Generator random_;  // created on first use
};

}  // namespace

std::shared_ptr<Model> make_alexnet(const recipe::ModelInput& input, bool batch_norm) {
  return std::make_shared<AlexNet>(input, batch_norm);
}

}  // namespace sluice::train
