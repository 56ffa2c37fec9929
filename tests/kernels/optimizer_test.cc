#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/kernels/instruction_sets.h"
#include "tests/kernels/samples.h"

namespace sluice::kernels {
namespace {

template <class T>
struct Tensor {
  std::vector<T> w, u, g;
};

template <class T>
Tensor<T> tensor(std::size_t count) {
  Tensor<T> result{std::vector<T>(count), std::vector<T>(count), std::vector<T>(count)};
  for (std::size_t i = 0; i < count; ++i) {
    result.w[i] = static_cast<T>(std::sin(1.0 + static_cast<double>(i)));
    result.u[i] = static_cast<T>(std::cos(2.0 + static_cast<double>(i)) / 3);
    result.g[i] = static_cast<T>(std::sin(3.0 * static_cast<double>(i)) * 5);
  }
  return result;
}

// The formulas of optimizer.h, one element at a time.
template <class T>
void reference(Tensor<T>& t, const MomentumStep& step, std::size_t first, std::size_t count) {
  const T learning_rate = static_cast<T>(step.learning_rate);
  const T momentum = static_cast<T>(step.momentum);
  for (std::size_t i = first; i < first + count; ++i) {
    const T d = static_cast<T>(step.ratio) * (t.g[i] + static_cast<T>(step.decay) * t.w[i]);
    if (step.folded) {
      t.u[i] = momentum * t.u[i] + learning_rate * d;
      t.w[i] = t.w[i] - (step.nesterov ? learning_rate * d + momentum * t.u[i] : t.u[i]);
    } else {
      t.u[i] = momentum * t.u[i] + d;
      t.w[i] = t.w[i] - learning_rate * (step.nesterov ? d + momentum * t.u[i] : t.u[i]);
    }
  }
}

template <class T>
void check(DataType type, const MomentumStep& step) {
  for (const std::size_t count : {0, 1, 3, 7, 8, 15, 16, 17, 100}) {
    const std::size_t first = count % 4;
    Tensor<T> expected = tensor<T>(count + 8);
    for (int round = 0; round < 3; ++round) reference(expected, step, first, count);
    on_every_instruction_set([&] {
      Tensor<T> got = tensor<T>(count + 8);
      for (int round = 0; round < 3; ++round) {
        momentum_update(type, got.w.data() + first, got.u.data() + first, got.g.data() + first,
                        count, step);
      }
      // Equal bits, and elements outside the range do not change.
      EXPECT_EQ(got.w, expected.w);
      EXPECT_EQ(got.u, expected.u);
    });
  }
}

TEST(Momentum, ComputesTheBitsOfItsFormulas) {
  for (const bool nesterov : {false, true}) {
    for (const bool folded : {false, true}) {
      for (const double decay : {0.0, 5e-4}) {
        for (const double ratio : {1.0, 0.013}) {
          const MomentumStep step{.learning_rate = 0.3,
                                  .momentum = 0.9,
                                  .decay = decay,
                                  .ratio = ratio,
                                  .nesterov = nesterov,
                                  .folded = folded};
          SCOPED_TRACE(testing::Message() << nesterov << folded << decay << ratio);
          check<float>(DataType::F32, step);
          check<double>(DataType::F64, step);
        }
      }
    }
  }
}

TEST(Momentum, GivesTheSameWeightsFoldedOrNotWhileTheLearningRateIsConstant) {
  for (const bool nesterov : {false, true}) {
    Tensor<double> outside = tensor<double>(50);
    outside.u.assign(50, 0);
    Tensor<double> folded = outside;
    for (int step = 0; step < 20; ++step) {
      momentum_update(DataType::F64, outside.w.data(), outside.u.data(), outside.g.data(), 50,
                      {.learning_rate = 0.1, .momentum = 0.9, .nesterov = nesterov});
      momentum_update(
          DataType::F64, folded.w.data(), folded.u.data(), folded.g.data(), 50,
          {.learning_rate = 0.1, .momentum = 0.9, .nesterov = nesterov, .folded = true});
    }
    for (std::size_t i = 0; i < 50; ++i) EXPECT_NEAR(outside.w[i], folded.w[i], 1e-12);
  }
}

TEST(Lars, ComputesTheNormsOfManyTensors) {
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

TEST(Lars, ComputesTheRatioOfThePaper) {
  EXPECT_EQ(lars_ratio({.weights = 8, .gradient = 2}, {.eta = 0.5, .decay = 0.25, .epsilon = 0}),
            1);
  EXPECT_EQ(lars_ratio({.weights = 8, .gradient = 2}, {.eta = 0.5, .decay = 0, .epsilon = 6}), 0.5);
}

TEST(Lars, HasRatioOneIfANormIsZero) {
  EXPECT_EQ(lars_ratio({.weights = 0, .gradient = 2}, {.eta = 0.5}), 1);
  EXPECT_EQ(lars_ratio({.weights = 2, .gradient = 0}, {.eta = 0.5}), 1);
}

}  // namespace
}  // namespace sluice::kernels
