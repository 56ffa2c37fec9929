// resnet.cc - residual networks (He et al. 2016). In those for large images, the 3x3 convolution of
// a bottleneck has the stride ("v1.5"). Those for small images are from section 4.2 of the paper.
#include <torch/nn/functional/padding.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include "base/format.h"
#include "train/models/build.h"

namespace sluice::train {
namespace {

enum class Shortcut : std::uint8_t { Projection, Padding };

struct BlockShape {
  int in = 0;
  int width = 0;  // channels inside the block
  int out = 0;
  int stride = 1;
  bool bottleneck = false;
  Shortcut shortcut = Shortcut::Projection;
};

// Convolutions with batch norms; the shortcut adds the input to their output.
class Block final : public torch::nn::Module {
 public:
  explicit Block(const BlockShape& shape) : shape_{shape} {
    if (shape.bottleneck) {
      add(shape.in, shape.width, {.kernel = 1, .padding = 0});
      add(shape.width, shape.width, {.stride = shape.stride});
      add(shape.width, shape.out, {.kernel = 1, .padding = 0});
    } else {
      add(shape.in, shape.width, {.stride = shape.stride});
      add(shape.width, shape.out, {});
    }
    if (resizes() && shape.shortcut == Shortcut::Projection) {
      downsample_ = register_module(
          "downsample",
          torch::nn::Sequential{
              convolution(shape.in, shape.out, {.kernel = 1, .stride = shape.stride, .padding = 0}),
              BatchNorm{shape.out}});
    }
  }

  torch::Tensor forward(const torch::Tensor& input) {
    torch::Tensor x = input;
    for (std::size_t i = 0; i < convolutions_.size(); ++i) {
      if (i > 0) x = x.relu_();
      x = norms_[i]->forward(convolutions_[i]->forward(x));
    }
    return x.add_(shortcut(input)).relu_();
  }

  const torch::Tensor& last_gamma() const { return norms_.back()->weight; }

 private:
  bool resizes() const { return shape_.stride != 1 || shape_.in != shape_.out; }

  void add(int in, int out, ConvolutionWindow window) {
    const std::size_t number = convolutions_.size() + 1;
    convolutions_.push_back(
        register_module(base::format("conv{}", number), convolution(in, out, window)));
    norms_.push_back(register_module(base::format("bn{}", number), BatchNorm{out}));
  }

  torch::Tensor shortcut(const torch::Tensor& input) {
    if (!resizes()) return input;
    if (!downsample_.is_empty()) return downsample_->forward(input);
    // Keeps one pixel per stride in each direction. New channels are zero.
    const torch::Tensor strided =
        input.slice(2, 0, {}, shape_.stride).slice(3, 0, {}, shape_.stride);
    return torch::constant_pad_nd(strided, {0, 0, 0, 0, 0, shape_.out - shape_.in});
  }

  BlockShape shape_;
  std::vector<torch::nn::Conv2d> convolutions_;
  std::vector<BatchNorm> norms_;
  torch::nn::Sequential downsample_{nullptr};
};

class ResNet final : public Model {
 public:
  // Creates the first convolution. `pool`: a pooling follows it, for large images.
  ResNet(const recipe::ModelInput& input, int width, ConvolutionWindow first, bool pool)
      : pool_{pool},
        channels_{width},
        conv1_{register_module("conv1", convolution(input.channels, width, first))},
        bn1_{register_module("bn1", BatchNorm{width})} {}

  // Only the first block of a stage has a stride.
  void add_stage(int blocks, BlockShape shape) {
    torch::nn::Sequential stage;
    for (int i = 0; i < blocks; ++i) {
      shape.in = channels_;
      auto block = std::make_shared<Block>(shape);
      stage->push_back(block);
      blocks_.push_back(std::move(block));
      channels_ = shape.out;
      shape.stride = 1;
    }
    register_module(base::format("layer{}", ++stages_), stage);
  }

  void add_classifier(int classes) {
    fc_ = register_module("fc", torch::nn::Linear{channels_, classes});
  }

  torch::Tensor forward(const torch::Tensor& images) override {
    torch::Tensor x = bn1_->forward(conv1_->forward(images)).relu_();
    if (pool_) x = torch::max_pool2d(x, 3, 2, 1);
    for (const std::shared_ptr<Block>& block : blocks_) x = block->forward(x);
    return fc_->forward(x.mean({2, 3}));
  }

  const std::vector<std::shared_ptr<Block>>& blocks() const { return blocks_; }

 private:
  bool pool_;
  int channels_;
  int stages_ = 0;
  torch::nn::Conv2d conv1_;
  BatchNorm bn1_;
  std::vector<std::shared_ptr<Block>> blocks_;
  torch::nn::Linear fc_{nullptr};
};

}  // namespace

std::shared_ptr<Model> make_resnet20(const recipe::ModelInput& input) {
  auto model = std::make_shared<ResNet>(input, 16, ConvolutionWindow{}, false);
  for (int stage = 0; stage < 3; ++stage) {
    model->add_stage(3, {.width = 16 << stage,
                         .out = 16 << stage,
                         .stride = stage > 0 ? 2 : 1,
                         .shortcut = Shortcut::Padding});
  }
  model->add_classifier(input.classes);
  return model;
}

std::shared_ptr<Model> make_resnet(const recipe::ModelInput& input, std::array<int, 4> blocks,
                                   bool bottleneck) {
  auto model = std::make_shared<ResNet>(
      input, 64, ConvolutionWindow{.kernel = 7, .stride = 2, .padding = 3}, true);
  int width = 64;
  for (const int count : blocks) {
    model->add_stage(count, {.width = width,
                             .out = bottleneck ? 4 * width : width,
                             .stride = width > 64 ? 2 : 1,
                             .bottleneck = bottleneck});
    width *= 2;
  }
  model->add_classifier(input.classes);
  return model;
}

std::vector<torch::Tensor> last_gammas(const Model& model) {
  std::vector<torch::Tensor> gammas;
  if (const auto* const resnet = dynamic_cast<const ResNet*>(&model)) {
    for (const std::shared_ptr<Block>& block : resnet->blocks()) {
      gammas.push_back(block->last_gamma());
    }
  }
  return gammas;
}

}  // namespace sluice::train
