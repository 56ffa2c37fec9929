// small.cc - networks that a CPU trains in seconds.
#include <torch/nn/modules/linear.h>

#include "train/models/build.h"

namespace sluice::train {
namespace {

// LeNet of LeCun et al. 1998, but with rectified units and max pooling.
class LeNet final : public Model {
 public:
  explicit LeNet(const recipe::ModelInput& input)
      : conv1_{register_module("conv1", convolution(input.channels, 6, {5, 1, 2, true}))},
        conv2_{register_module("conv2", convolution(6, 16, {5, 1, 0, true}))} {
    const int side = size_after_window(input.image / 2, 5) / 2;
    fc1_ = register_module("fc1", torch::nn::Linear{16 * side * side, 120});
    fc2_ = register_module("fc2", torch::nn::Linear{120, 84});
    fc3_ = register_module("fc3", torch::nn::Linear{84, input.classes});
  }

  torch::Tensor forward(const torch::Tensor& images) override {
    torch::Tensor x = torch::max_pool2d(conv1_->forward(images).relu_(), 2);
    x = torch::max_pool2d(conv2_->forward(x).relu_(), 2).flatten(1);
    x = fc1_->forward(x).relu_();
    return fc3_->forward(fc2_->forward(x).relu_());
  }

 private:
  torch::nn::Conv2d conv1_;
  torch::nn::Conv2d conv2_;
  torch::nn::Linear fc1_{nullptr};
  torch::nn::Linear fc2_{nullptr};
  torch::nn::Linear fc3_{nullptr};
};

// Three convolutions. The first halves the image by its stride, the others by a pooling. Pooling
// comes before the batch norm, which then has a quarter of the work.
class SmallConv final : public Model {
 public:
  explicit SmallConv(const recipe::ModelInput& input)
      : conv1_{register_module("conv1", convolution(input.channels, 16, {5, 2, 2}))},
        bn1_{register_module("bn1", BatchNorm{16})},
        conv2_{register_module("conv2", convolution(16, 32))},
        bn2_{register_module("bn2", BatchNorm{32})},
        conv3_{register_module("conv3", convolution(32, 64))},
        bn3_{register_module("bn3", BatchNorm{64})} {
    const int side = size_after_window(input.image, 5, 2, 2) / 2 / 2;
    fc_ = register_module("fc", torch::nn::Linear{64 * side * side, input.classes});
  }

  torch::Tensor forward(const torch::Tensor& images) override {
    torch::Tensor x = bn1_->forward(conv1_->forward(images)).relu_();
    x = bn2_->forward(torch::max_pool2d(conv2_->forward(x), 2)).relu_();
    x = bn3_->forward(torch::max_pool2d(conv3_->forward(x), 2)).relu_();
    return fc_->forward(x.flatten(1));
  }

 private:
  torch::nn::Conv2d conv1_;
  BatchNorm bn1_;
  torch::nn::Conv2d conv2_;
  BatchNorm bn2_;
  torch::nn::Conv2d conv3_;
  BatchNorm bn3_;
  torch::nn::Linear fc_{nullptr};
};

}  // namespace

std::shared_ptr<Model> make_lenet(const recipe::ModelInput& input) {
  return std::make_shared<LeNet>(input);
}

std::shared_ptr<Model> make_smallconv(const recipe::ModelInput& input) {
  return std::make_shared<SmallConv>(input);
}

}  // namespace sluice::train
