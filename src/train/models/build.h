// build.h - the functions that build each model, and the layers that the models share.
#pragma once

#include <torch/nn/modules/conv.h>

#include <array>
#include <memory>
#include <vector>

#include "train/models/batch_norm.h"
#include "train/models/models.h"

namespace sluice::train {

std::shared_ptr<Model> make_lenet(const recipe::ModelInput& input);
std::shared_ptr<Model> make_smallconv(const recipe::ModelInput& input);
std::shared_ptr<Model> make_alexnet(const recipe::ModelInput& input, bool batch_norm);
std::shared_ptr<Model> make_resnet20(const recipe::ModelInput& input);
std::shared_ptr<Model> make_resnet(const recipe::ModelInput& input, std::array<int, 4> blocks,
                                   bool bottleneck);

// The scale of the last batch norm in each residual block; empty for networks without such blocks.
std::vector<torch::Tensor> last_gammas(const Model& model);

struct ConvolutionWindow {
  int kernel = 3;
  int stride = 1;
  int padding = 1;
  bool bias = false;
};

torch::nn::Conv2d convolution(int in, int out, ConvolutionWindow window = {});

// The size of an image after a convolution or pooling.
constexpr int size_after_window(int image, int kernel, int stride = 1, int padding = 0) {
  return (image + 2 * padding - kernel) / stride + 1;
}

}  // namespace sluice::train
