// Compares Lars with a few lines of arithmetic in f64.
#include "sluice/torch/lars.h"

#include <memory>
#include <sstream>

#include "tests/libtorch/optim/optimizer_reference.h"

namespace sluice::libtorch {
namespace {

class LarsForms : public testing::TestWithParam<SgdForm> {};

TEST_P(LarsForms, UpdateLikeTheReferenceWhileTheRateChanges) {
  torch::Tensor matrix = parameter({5, 7}, 0);
  torch::Tensor filter = parameter({2, 3, 3, 3}, 4);
  torch::Tensor bias = parameter({5}, 1);
  Lars optimizer{{matrix, bias, filter},
                 {.momentum = 0.96,
                  .nesterov = GetParam().nesterov,
                  .weight_decay = 0.01,
                  .eta = 0.0025,
                  .eps = 1e-9,
                  .rate_place = GetParam().mode,
                  .momentum_correction = GetParam().correction}};
  const ReferenceRule rule{.momentum = 0.96,
                           .decay = 0.01,
                           .nesterov = GetParam().nesterov,
                           .folded = GetParam().mode == LearningRateMode::Folded,
                           .corrected = GetParam().correction,
                           .eta = 0.0025,
                           .eps = 1e-9};
  ReferenceRule bias_rule = rule;
  bias_rule.decay = 0;
  bias_rule.eta = 0;
  Reference matrix_reference = reference_of(matrix);
  Reference filter_reference = reference_of(filter);
  Reference bias_reference = reference_of(bias);
  for (int step = 0; step < kOptimizerSteps; ++step) {
    matrix.mutable_grad() = gradient({5, 7}, step);
    filter.mutable_grad() = gradient({2, 3, 3, 3}, step);
    bias.mutable_grad() = gradient({5}, 2 * step);
    optimizer.set_lr(13 * rate(step));
    optimizer.step();
    step_reference(matrix_reference, values_of(matrix.grad()), 13 * rate(step), rule);
    step_reference(filter_reference, values_of(filter.grad()), 13 * rate(step), rule);
    step_reference(bias_reference, values_of(bias.grad()), 13 * rate(step), bias_rule);
  }
  expect_near(matrix, matrix_reference, 1e-12);
  expect_near(filter, filter_reference, 1e-12);
  expect_near(bias, bias_reference, 1e-12);
}

INSTANTIATE_TEST_SUITE_P(All, LarsForms,
                         testing::Values(SgdForm{false, LearningRateMode::Outside, false},
                                         SgdForm{true, LearningRateMode::Outside, false},
                                         SgdForm{false, LearningRateMode::Folded, false},
                                         SgdForm{true, LearningRateMode::Folded, false},
                                         SgdForm{false, LearningRateMode::Folded, true}));

TEST(Lars, ANormOfZeroGivesARatioOfOne) {
  torch::Tensor zero = torch::zeros({3, 3}, torch::kFloat64).requires_grad_();
  torch::Tensor still = parameter({3, 3}, 0);
  const torch::Tensor before = still.detach().clone();
  Lars optimizer{{zero, still}, {.lr = 0.5, .weight_decay = 0.1}};
  zero.mutable_grad() = gradient({3, 3}, 0);
  still.mutable_grad() = torch::zeros({3, 3}, torch::kFloat64);
  optimizer.step();
  EXPECT_TRUE(torch::allclose(zero, gradient({3, 3}, 0) * -0.5));
  EXPECT_TRUE(torch::allclose(still, before * (1 - 0.5 * 0.1)));
}

// Tests the kernels with f64, and the tensor operations with bf16, which has 8 bits of mantissa.
class LarsParts : public testing::TestWithParam<torch::ScalarType> {};

TEST_P(LarsParts, TheNormUsesTheLatestValueOfEachPartForOneStep) {
  torch::Tensor w = parameter({8, 8}, 0, GetParam());
  Lars optimizer{{w}, {.lr = 2, .momentum = 0, .weight_decay = 0.1, .eta = 0.01}};
  const auto listed = std::make_shared<ListedGradients>();
  options_of(optimizer).source = listed;
  std::vector<double> last(64, 0.0);
  const auto step = [&](int number, const std::vector<gradient::GradientPart>& parts,
                        bool decayed) {
    (*listed)[w] = {.whole = false, .parts = parts, .decayed = decayed};
    w.mutable_grad() = gradient({8, 8}, number).to(GetParam());
    const std::vector<double> before = values_of(w);
    const std::vector<double> g = values_of(w.grad());
    std::vector<double> expected = before;
    for (const gradient::GradientPart& part : parts) {
      for (std::size_t i = part.first; i < part.first + part.count; ++i)
        last[i] = g[i] / part.steps;
    }
    const double ratio = 0.01 * norm(before) / (norm(last) + 0.1 * norm(before) + 1e-9);
    for (const gradient::GradientPart& part : parts) {
      for (std::size_t i = part.first; i < part.first + part.count; ++i) {
        expected[i] -= 2 * ratio * (g[i] + (decayed ? 0 : 0.1) * before[i]);
      }
    }
    optimizer.step();
    expect_near(w, {.w = expected}, GetParam() == torch::kFloat64 ? 1e-14 : 0.02);
  };
  step(0, {{0, 24}, {24, 24}, {48, 16}}, false);
  step(1, {{24, 24}}, true);
  step(2, {{0, 24, 2}, {48, 16, 2}}, true);

  std::stringstream file;
  torch::save(optimizer, file);
  Lars restored{{w}, {.lr = 2, .momentum = 0, .weight_decay = 0.1, .eta = 0.01}};
  torch::load(restored, file);
  options_of(restored).source = listed;
  const torch::Tensor before = w.detach().clone();
  const std::vector<gradient::GradientPart> parts{{24, 24, 2}};
  (*listed)[w] = {.whole = false, .parts = parts, .decayed = true};
  optimizer.step();
  const torch::Tensor after = w.detach().clone();
  {
    const torch::NoGradGuard no_grad;
    w.copy_(before);
  }
  restored.step();
  EXPECT_TRUE(torch::equal(w, after));
}

INSTANTIATE_TEST_SUITE_P(Types, LarsParts, testing::Values(torch::kFloat64, torch::kBFloat16));

TEST(Lars, UpdatesSixteenBitParametersToo) {
  torch::Tensor w = parameter({8, 8}, 0, torch::kBFloat16);
  Reference reference = reference_of(w);
  Lars optimizer{{w}, {.lr = 1, .weight_decay = 0.1, .eta = 0.1}};
  w.mutable_grad() = gradient({8, 8}, 0).to(torch::kBFloat16);
  optimizer.step();
  step_reference(reference, values_of(w.grad()), 1,
                 {.decay = 0.1, .folded = true, .eta = 0.1, .eps = 1e-9});
  expect_near(w, reference, 0.02);
}

}  // namespace
}  // namespace sluice::libtorch
