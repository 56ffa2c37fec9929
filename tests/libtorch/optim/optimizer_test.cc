// Compares Sgd with a few lines of arithmetic in f64 and with torch's SGD; tests the base class of
// Sgd and Lars.
#include <memory>
#include <sstream>

#include "libtorch/optim/momentum_update.h"
#include "sluice/status.h"
#include "sluice/torch/lars.h"
#include "sluice/torch/sgd.h"
#include "tests/libtorch/optim/optimizer_reference.h"

namespace sluice::libtorch {
namespace {

class SgdForms : public testing::TestWithParam<SgdForm> {};

TEST_P(SgdForms, UpdateLikeTheReferenceWhileTheRateChanges) {
  torch::Tensor matrix = parameter({5, 7}, 0);
  torch::Tensor bias = parameter({5}, 1);
  Sgd optimizer{{matrix, bias},
                {.momentum = 0.8,
                 .nesterov = GetParam().nesterov,
                 .weight_decay = 0.01,
                 .decay_one_dimensional = false,
                 .rate_place = GetParam().mode,
                 .momentum_correction = GetParam().correction}};
  const ReferenceRule rule{.momentum = 0.8,
                           .decay = 0.01,
                           .nesterov = GetParam().nesterov,
                           .folded = GetParam().mode == LearningRateMode::Folded,
                           .corrected = GetParam().correction};
  ReferenceRule bias_rule = rule;
  bias_rule.decay = 0;
  Reference matrix_reference = reference_of(matrix);
  Reference bias_reference = reference_of(bias);
  for (int step = 0; step < kOptimizerSteps; ++step) {
    matrix.mutable_grad() = gradient({5, 7}, step);
    bias.mutable_grad() = gradient({5}, 2 * step);
    optimizer.set_lr(rate(step));
    optimizer.step();
    step_reference(matrix_reference, values_of(matrix.grad()), rate(step), rule);
    step_reference(bias_reference, values_of(bias.grad()), rate(step), bias_rule);
  }
  expect_near(matrix, matrix_reference);
  expect_near(bias, bias_reference);
}

INSTANTIATE_TEST_SUITE_P(All, SgdForms,
                         testing::Values(SgdForm{false, LearningRateMode::Outside, true},
                                         SgdForm{true, LearningRateMode::Outside, true},
                                         SgdForm{false, LearningRateMode::Folded, false},
                                         SgdForm{true, LearningRateMode::Folded, false},
                                         SgdForm{false, LearningRateMode::Folded, true},
                                         SgdForm{true, LearningRateMode::Folded, true}));

TEST(Sgd, UpdatesLikeTorchsSgd) {
  for (const bool nesterov : {false, true}) {
    torch::Tensor ours = parameter({33, 9}, 0, torch::kFloat32);
    torch::Tensor theirs = ours.detach().clone().requires_grad_();
    Sgd sgd{{ours}, {.momentum = 0.9, .nesterov = nesterov, .weight_decay = 0.02}};
    torch::optim::SGD torch_sgd{
        {theirs},
        torch::optim::SGDOptions(0.1).momentum(0.9).weight_decay(0.02).nesterov(nesterov)};
    for (int step = 0; step < kOptimizerSteps; ++step) {
      ours.mutable_grad() = gradient({33, 9}, step).to(torch::kFloat32);
      theirs.mutable_grad() = ours.grad().clone();
      sgd.set_lr(rate(step));
      torch_sgd.param_groups()[0].options().set_lr(rate(step));
      sgd.step();
      torch_sgd.step();
    }
    // f32: torch may fuse a multiplication with an addition; Sluice never does.
    EXPECT_TRUE(torch::allclose(ours, theirs, 1e-5, 1e-5)) << nesterov;
  }
}

TEST(Sgd, DecaysAllParametersByDefault) {
  torch::Tensor bias = parameter({4}, 0);
  Sgd optimizer{{bias}, {.lr = 1, .momentum = 0, .weight_decay = 0.5}};
  const torch::Tensor before = bias.detach().clone();
  bias.mutable_grad() = torch::zeros_like(bias);
  optimizer.step();
  EXPECT_TRUE(torch::allclose(bias, before * 0.5));
  EXPECT_EQ(libtorch::options_of(optimizer).rule.weight_decay_of(bias), 0.5);
}

TEST(Sgd, AParameterWithoutGradientKeepsItsValueAndVelocity) {
  torch::Tensor w = parameter({6, 6}, 0);
  Sgd optimizer{{w}, {.weight_decay = 0.1}};
  w.mutable_grad() = gradient({6, 6}, 0);
  optimizer.step();
  const torch::Tensor before = w.detach().clone();
  const torch::Tensor velocity = optimizer.velocities()[0].clone();
  optimizer.zero_grad(true);
  EXPECT_FALSE(w.grad().defined());
  optimizer.step();
  EXPECT_TRUE(torch::equal(w, before));
  EXPECT_TRUE(torch::equal(optimizer.velocities()[0], velocity));
}

TEST(Sgd, ZeroGradDropsTheGradientOrKeepsItsMemory) {
  torch::Tensor w = parameter({3, 3}, 0);
  w.mutable_grad() = gradient({3, 3}, 0);
  const void* const memory = w.grad().data_ptr();
  Sgd optimizer{{w}};
  optimizer.zero_grad(false);
  EXPECT_EQ(w.grad().data_ptr(), memory);
  EXPECT_EQ(w.grad().abs().sum().item<double>(), 0);
  optimizer.zero_grad();
  EXPECT_FALSE(w.grad().defined());
}

TEST(Sgd, AllStridesGiveTheSameBits) {
  const std::vector<std::int64_t> shape{4, 3, 5, 2};
  const auto weights_after = [&](torch::Tensor w, const auto& with_layout) {
    w.requires_grad_();
    Sgd optimizer{{w}, {.nesterov = true, .weight_decay = 0.1}};
    for (int step = 0; step < 3; ++step) {
      w.mutable_grad() = with_layout(gradient(shape, step).to(torch::kFloat32));
      optimizer.step();
    }
    return w.detach().contiguous();
  };
  const auto plain = [](const torch::Tensor& t) { return t.contiguous(); };
  const auto last = [](const torch::Tensor& t) {
    return t.contiguous(torch::MemoryFormat::ChannelsLast);
  };
  const torch::Tensor start = numbers(shape, 0, torch::kFloat32);
  const torch::Tensor expected = weights_after(start.clone(), plain);
  EXPECT_TRUE(torch::equal(weights_after(last(start).clone(), last), expected));
  EXPECT_TRUE(torch::equal(weights_after(last(start).clone(), plain), expected));
  EXPECT_TRUE(torch::equal(weights_after(start.clone(), last), expected));
}

TEST(Sgd, DoesNotChangeTheRestOfALargerTensor) {
  torch::Tensor whole = numbers({6, 8}, 0);
  const torch::Tensor before = whole.clone();
  torch::Tensor w = whole.slice(1, 2, 5).detach().requires_grad_();
  Reference reference = reference_of(w);
  Sgd optimizer{{w}, {.lr = 0.1, .weight_decay = 0.1}};
  for (int step = 0; step < 3; ++step) {
    w.mutable_grad() = gradient({6, 3}, step);
    optimizer.step();
    step_reference(reference, values_of(w.grad()), 0.1, {.decay = 0.1});
  }
  expect_near(w, reference);
  EXPECT_TRUE(torch::equal(whole.slice(1, 0, 2), before.slice(1, 0, 2)));
  EXPECT_TRUE(torch::equal(whole.slice(1, 5), before.slice(1, 5)));
}

TEST(Sgd, UpdatesSixteenBitParametersToo) {
  torch::Tensor w = parameter({8, 8}, 0, torch::kBFloat16);
  Reference reference = reference_of(w);
  Sgd optimizer{{w}, {.lr = 0.1, .weight_decay = 0.1}};
  for (int step = 0; step < 3; ++step) {
    w.mutable_grad() = gradient({8, 8}, step).to(torch::kBFloat16);
    optimizer.step();
    step_reference(reference, values_of(w.grad()), 0.1, {.decay = 0.1});
  }
  expect_near(w, reference, 0.05);  // 8 bits of mantissa, a few roundings a step
}

// Tests the kernels with f64, and the tensor operations with bf16.
class PartialGradients : public testing::TestWithParam<torch::ScalarType> {};

TEST_P(PartialGradients, UpdateOnlyTheirElements) {
  torch::Tensor w = parameter({10, 10}, 0, GetParam());
  torch::Tensor other = parameter({4, 4}, 2, GetParam());
  Sgd optimizer{{w, other}, {.lr = 0.1, .nesterov = true, .weight_decay = 0.1}};
  const auto listed = std::make_shared<ListedGradients>();
  options_of(optimizer).source = listed;
  Reference reference = reference_of(w);
  const ReferenceRule rule{.decay = 0.1, .nesterov = true};
  const double tolerance = GetParam() == torch::kFloat64 ? 1e-13 : 0.05;

  const auto step = [&](int number, std::span<const gradient::GradientPart> parts) {
    (*listed)[w] = {.whole = false, .parts = parts};
    w.mutable_grad() = gradient({10, 10}, number).to(GetParam());
    other.mutable_grad() = gradient({4, 4}, number).to(GetParam());
    const torch::Tensor others = other.detach().clone();
    Reference updated = reference;
    step_reference(updated, values_of(w.grad()), 0.1, rule);
    for (const gradient::GradientPart& part : parts) {
      for (std::size_t i = part.first; i < part.first + part.count; ++i) {
        reference.w[i] = updated.w[i];
        reference.u[i] = updated.u[i];
      }
    }
    optimizer.step();
    expect_near(w, reference, tolerance);
    expect_near(optimizer.velocities()[0], {.w = reference.u}, tolerance);
    EXPECT_FALSE(torch::equal(other, others));
  };
  const std::vector<gradient::GradientPart> first{{0, 32}, {64, 32}};
  const std::vector<gradient::GradientPart> second{{32, 32}, {96, 4}};
  step(0, first);
  step(1, second);
  step(2, {});
  step(3, first);
}

INSTANTIATE_TEST_SUITE_P(Types, PartialGradients,
                         testing::Values(torch::kFloat64, torch::kBFloat16));

TEST(ReceivedGradient, IsNotDecayedAgain) {
  torch::Tensor w = parameter({5, 5}, 0);
  Reference reference = reference_of(w);
  Sgd optimizer{{w}, {.lr = 0.1, .weight_decay = 0.3}};
  const auto listed = std::make_shared<ListedGradients>();
  (*listed)[w] = {.decayed = true};
  options_of(optimizer).source = listed;
  w.mutable_grad() = gradient({5, 5}, 0);
  optimizer.step();
  step_reference(reference, values_of(w.grad()), 0.1, {});
  expect_near(w, reference);

  options_of(optimizer).source = nullptr;
  optimizer.step();
  step_reference(reference, values_of(w.grad()), 0.1, {.decay = 0.3});
  expect_near(w, reference);
}

TEST(ReceivedGradient, MustBeWholeIfTheTensorHasGaps) {
  torch::Tensor w = numbers({6, 8}, 0).slice(1, 2, 5).detach().requires_grad_();
  Sgd optimizer{{w}};
  const auto listed = std::make_shared<ListedGradients>();
  const std::vector<gradient::GradientPart> parts{{0, 4}};
  (*listed)[w] = {.whole = false, .parts = parts};
  options_of(optimizer).source = listed;
  w.mutable_grad() = gradient({6, 3}, 0);
  EXPECT_THROW(optimizer.step(), Error);
}

TEST(MomentumOptimizer, GivesTheSameResultOnAGpu) {
  if (!torch::cuda::is_available()) GTEST_SKIP() << "no GPU, or a libtorch without CUDA";
  const std::vector<gradient::GradientPart> parts{{0, 10}, {20, 15}};
  const auto weights_after = [&](torch::Device device, bool lars) {
    torch::Tensor whole = numbers({9, 4}, 0).to(device).requires_grad_();
    torch::Tensor part = numbers({5, 7}, 1).to(device).requires_grad_();
    torch::Tensor bias = numbers({5}, 2).to(device).requires_grad_();
    const auto listed = std::make_shared<ListedGradients>();
    (*listed)[part] = {.whole = false, .parts = parts};
    std::unique_ptr<MomentumOptimizer> optimizer;
    const std::vector<torch::Tensor> parameters{whole, part, bias};
    if (lars) {
      optimizer = std::make_unique<Lars>(parameters, LarsOptions{.weight_decay = 0.1, .eta = 0.1});
    } else {
      optimizer = std::make_unique<Sgd>(parameters, SgdOptions{.weight_decay = 0.1});
    }
    options_of(*optimizer).source = listed;
    for (int step = 0; step < 3; ++step) {
      whole.mutable_grad() = gradient({9, 4}, step).to(device);
      part.mutable_grad() = gradient({5, 7}, step).to(device);
      bias.mutable_grad() = gradient({5}, step).to(device);
      optimizer->set_lr(rate(step));
      optimizer->step();
    }
    return torch::cat({whole.detach().view({-1}), part.detach().view({-1}), bias.detach()}).cpu();
  };
  for (const bool lars : {false, true}) {
    EXPECT_TRUE(torch::allclose(weights_after(torch::kCUDA, lars), weights_after(torch::kCPU, lars),
                                0, 1e-13))
        << lars;
  }
}

TEST(MomentumOptimizer, BitsDoNotDependOnTheNumberOfThreads) {
  const int threads = at::get_num_threads();
  const auto weights_after = [](int count) {
    at::set_num_threads(count);
    torch::Tensor w = parameter({600, 700}, 0, torch::kFloat32);
    torch::Tensor small = parameter({7, 3}, 0, torch::kFloat32);
    Lars optimizer{{w, small}, {.lr = 1, .weight_decay = 0.1, .eta = 0.1}};
    for (int step = 0; step < 2; ++step) {
      w.mutable_grad() = gradient({600, 700}, step).to(torch::kFloat32);
      small.mutable_grad() = gradient({7, 3}, step).to(torch::kFloat32);
      optimizer.step();
    }
    return torch::cat({w.detach().view({-1}), small.detach().view({-1})});
  };
  EXPECT_TRUE(torch::equal(weights_after(1), weights_after(3)));
  at::set_num_threads(threads);
}

TEST(MomentumOptimizer, ContinuesFromASavedState) {
  torch::Tensor w = parameter({4, 5}, 0);
  Sgd optimizer{{w}, {.weight_decay = 0.1}};
  w.mutable_grad() = gradient({4, 5}, 0);
  optimizer.step();

  std::stringstream file;
  torch::save(optimizer, file);
  torch::Tensor copy = w.detach().clone().requires_grad_();
  copy.mutable_grad() = w.grad().clone();
  Sgd restored{{copy}, {.weight_decay = 0.1}};
  torch::load(restored, file);
  optimizer.step();
  restored.step();
  EXPECT_TRUE(torch::equal(w, copy));

  std::stringstream again;
  torch::save(optimizer, again);
  torch::Tensor larger = parameter({4, 6}, 0);
  Sgd wrong{{larger}};
  EXPECT_THROW(torch::load(wrong, again), Error);
}

TEST(MomentumOptimizer, MayBeSavedBeforeItsFirstStep) {
  torch::Tensor w = parameter({4, 5}, 0);
  const torch::Tensor before = w.detach().clone();
  std::stringstream file;
  torch::save(Sgd{{w}}, file);
  Sgd restored{{w}, {.lr = 0.1}};
  torch::load(restored, file);
  w.mutable_grad() = gradient({4, 5}, 0);
  restored.step();
  EXPECT_TRUE(torch::allclose(w, before - 0.1 * gradient({4, 5}, 0)));
}

TEST(MomentumOptimizer, MayBeSavedBeforeAGroupsFirstStep) {
  torch::Tensor w = parameter({4, 5}, 0);
  torch::Tensor late = parameter({2, 2}, 1);
  Sgd optimizer{{w}};
  w.mutable_grad() = gradient({4, 5}, 0);
  optimizer.step();
  optimizer.add_param_group({{late}});
  std::stringstream file;
  torch::save(optimizer, file);
  Sgd restored{{w}};
  restored.add_param_group({{late}});
  torch::load(restored, file);
  EXPECT_TRUE(torch::allclose(restored.velocities()[0], gradient({4, 5}, 0)));
  EXPECT_TRUE(torch::equal(restored.velocities()[1], torch::zeros({2, 2}, torch::kFloat64)));
}

TEST(MomentumOptimizer, WorksWithTorchsSchedulersAndClosures) {
  torch::Tensor w = parameter({3, 3}, 0);
  Sgd optimizer{{w}, {.lr = 1}};
  torch::optim::StepLR scheduler{optimizer, 1, 0.25};
  scheduler.step();  // the first one counts as the start
  scheduler.step();
  EXPECT_DOUBLE_EQ(optimizer.param_groups()[0].options().get_lr(), 0.25);

  const torch::Tensor before = w.detach().clone();
  const torch::Tensor loss = optimizer.step([&] {
    optimizer.zero_grad();
    torch::Tensor sum = w.sum();
    sum.backward();
    return sum;
  });
  EXPECT_NEAR(loss.item<double>(), before.sum().item<double>(), 1e-12);
  EXPECT_TRUE(torch::allclose(w, before - 0.25));
}

TEST(MomentumOptimizer, GroupsAddedLaterHaveTheirOwnRate) {
  torch::Tensor w = parameter({3, 3}, 0);
  torch::Tensor late = parameter({2, 2}, 1);
  Sgd optimizer{{w}, {.lr = 1}};
  w.mutable_grad() = gradient({3, 3}, 0);
  optimizer.step();
  optimizer.add_param_group({{late}});
  optimizer.param_groups()[1].options().set_lr(0.5);
  late.mutable_grad() = gradient({2, 2}, 0);
  const torch::Tensor before = late.detach().clone();
  optimizer.step();
  EXPECT_TRUE(torch::allclose(late, before - 0.5 * gradient({2, 2}, 0)));
}

}  // namespace
}  // namespace sluice::libtorch
