#include "kernels/lars.h"

#include <gtest/gtest.h>

#include <vector>

namespace sluice::kernels {
namespace {

TEST(Lars, TakesTheNormsOfManyTensorsAtOnce) {
  const std::vector<float> w = {3, 4, 6, 8};
  const std::vector<float> g = {0, -5, 5, 12};
  const std::vector<LarsTensor> tensors = {
      {w.data(), g.data(), 2}, {nullptr, nullptr, 0}, {w.data() + 2, g.data() + 2, 2}};
  std::vector<LarsNorms> norms(3, {-1, -1});
  lars_norms(DataType::F32, tensors, norms);
  EXPECT_EQ(norms[0].weights, 5);
  EXPECT_EQ(norms[0].gradient, 5);
  EXPECT_EQ(norms[1].weights, 0);
  EXPECT_EQ(norms[1].gradient, 0);
  EXPECT_EQ(norms[2].weights, 10);
  EXPECT_EQ(norms[2].gradient, 13);
}

TEST(Lars, RatioIsThatOfThePaper) {
  EXPECT_EQ(lars_ratio({.weights = 8, .gradient = 2}, {.eta = 0.5, .decay = 0.25, .epsilon = 0}),
            1);
  EXPECT_EQ(lars_ratio({.weights = 8, .gradient = 2}, {.eta = 0.5, .decay = 0, .epsilon = 6}), 0.5);
}

TEST(Lars, RatioIsOneWhereANormIsZero) {
  EXPECT_EQ(lars_ratio({.weights = 0, .gradient = 2}, {.eta = 0.5}), 1);
  EXPECT_EQ(lars_ratio({.weights = 2, .gradient = 0}, {.eta = 0.5}), 1);
}

}  // namespace
}  // namespace sluice::kernels
