#include "train/loop/loss.h"

#include <torch/nn/functional/loss.h>

namespace sluice::train {

torch::Tensor smoothed_cross_entropy(const torch::Tensor& scores, const torch::Tensor& labels,
                                     double smoothing) {
  return torch::nn::functional::cross_entropy(
      scores, labels, torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(smoothing));
}

}  // namespace sluice::train
