#include "train/loop/loss.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>

namespace sluice::train {
namespace {

TEST(SmoothedCrossEntropy, IsItsDefinition) {
  torch::manual_seed(1);
  const torch::Tensor scores = torch::randn({6, 5}, torch::kFloat64);
  const torch::Tensor labels = torch::tensor({0, 4, 2, 2, 1, 3});
  for (const double smoothing : {0.0, 0.1, 0.5}) {
    double sum = 0;
    for (std::int64_t i = 0; i < 6; ++i) {
      double total = 0;
      for (std::int64_t c = 0; c < 5; ++c) total += std::exp(scores[i][c].item<double>());
      for (std::int64_t c = 0; c < 5; ++c) {
        const bool own = c == labels[i].item<std::int64_t>();
        const double meant = (own ? 1 - smoothing : 0) + smoothing / 5;
        sum -= meant * std::log(std::exp(scores[i][c].item<double>()) / total);
      }
    }
    EXPECT_NEAR(smoothed_cross_entropy(scores, labels, smoothing).item<double>(), sum / 6, 1e-12);
  }
}

}  // namespace
}  // namespace sluice::train
