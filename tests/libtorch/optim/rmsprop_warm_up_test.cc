// Compares the warm-up with the paper's formulas, element by element in f64.
#include "sluice/torch/rmsprop_warm_up.h"

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <array>
#include <cmath>
#include <memory>
#include <sstream>
#include <vector>

#include "libtorch/optim/momentum_update.h"
#include "sluice/status.h"
#include "sluice/torch/sgd.h"

namespace sluice::libtorch {
namespace {

torch::Tensor numbers(const std::vector<std::int64_t>& shape, double phase) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return torch::arange(count, torch::kFloat64).mul(0.37).add(phase).sin().reshape(shape);
}

// One weight in the paper's notation: theta is the weight, d the step, m the mean of squares. The
// slope of a_sgd is 1 / bp.
struct Paper {
  double theta;
  double m = 0;
  double d = 0;

  void step(double gradient, double epoch, double eta, double decay) {
    const double bc = 10;
    const double bp = 5;
    double a_sgd = 1;
    if (epoch < bc) {
      a_sgd = 0.5 * std::exp(2 * (epoch - bc) / bp);
    } else if (epoch < bc + bp / 2) {
      a_sgd = 0.5 + (epoch - bc) / bp;
    }
    const double a_rms = (1 - a_sgd) * 3e-4 / eta;
    const double g = gradient + decay * theta;
    m = 0.99 * m + 0.01 * g * g;
    d = 0.9 * d - (a_sgd + a_rms / (std::sqrt(m) + 1e-8)) * g;
    theta += eta * d;
  }
};

TEST(RmspropWarmUp, UpdatesLikeThePaperWhileRateAndEpochChange) {
  torch::Tensor w = numbers({5, 7}, 0).requires_grad_();
  torch::Tensor bias = numbers({4}, 1).requires_grad_();
  RmspropWarmUp optimizer{{w, bias}, {.weight_decay = 0.01, .decay_one_dimensional = false}};
  std::vector<Paper> papers;
  for (std::int64_t i = 0; i < 35; ++i) papers.push_back({w.view({-1})[i].item<double>()});
  std::vector<Paper> bias_papers;
  for (std::int64_t i = 0; i < 4; ++i) bias_papers.push_back({bias[i].item<double>()});
  for (int step = 0; step < 60; ++step) {
    const double epoch = step / 4.0;  // past the end of the warm-up, 12.5
    const double rate = 0.05 * (1 + 0.5 * std::cos(step));
    w.mutable_grad() = numbers({5, 7}, 10.0 + step);
    bias.mutable_grad() = numbers({4}, 20.0 + step);
    optimizer.set_lr(rate);
    optimizer.set_epoch(epoch);
    optimizer.step();
    for (std::size_t i = 0; i < papers.size(); ++i)
      papers[i].step(w.grad().view({-1})[static_cast<std::int64_t>(i)].item<double>(), epoch, rate,
                     0.01);
    for (std::size_t i = 0; i < bias_papers.size(); ++i)
      bias_papers[i].step(bias.grad()[static_cast<std::int64_t>(i)].item<double>(), epoch, rate, 0);
  }
  // Both compute in f64; the tolerance covers a few roundings in each of 60 steps.
  for (std::size_t i = 0; i < papers.size(); ++i)
    ASSERT_NEAR(w.view({-1})[static_cast<std::int64_t>(i)].item<double>(), papers[i].theta, 1e-12);
  for (std::size_t i = 0; i < bias_papers.size(); ++i)
    ASSERT_NEAR(bias[static_cast<std::int64_t>(i)].item<double>(), bias_papers[i].theta, 1e-12);
}

TEST(RmspropWarmUp, TheWeightOfSgdRisesSmoothlyToOne) {
  const RmspropWarmUp optimizer{{torch::zeros({1})}};
  constexpr double kStep = 1e-4;
  double last = optimizer.sgd_part(0);
  double last_slope = (optimizer.sgd_part(kStep) - last) / kStep;
  EXPECT_NEAR(last, 0.5 * std::exp(-4), 1e-15);
  for (double epoch = kStep; epoch < 14; epoch += kStep) {
    const double part = optimizer.sgd_part(epoch);
    ASSERT_GE(part, last) << epoch;
    ASSERT_LE(part, 1) << epoch;
    const double slope = (part - last) / kStep;
    if (epoch < 12.4) {
      ASSERT_NEAR(slope, last_slope, 1e-3) << "there is a kink at " << epoch;
    }
    last = part;
    last_slope = slope;
  }
  EXPECT_EQ(optimizer.sgd_part(10), 0.5);
  EXPECT_EQ(optimizer.sgd_part(12.5), 1);
}

TEST(RmspropWarmUp, HasTheBitsOfSgdAfterwards) {
  torch::Tensor ours = numbers({6, 5}, 0).requires_grad_();
  torch::Tensor theirs = ours.detach().clone().requires_grad_();
  RmspropWarmUp optimizer{{ours}, {.weight_decay = 0.1}};
  Sgd sgd{{theirs}, {.weight_decay = 0.1}};
  optimizer.set_epoch(12.5);
  for (int step = 0; step < 5; ++step) {
    ours.mutable_grad() = numbers({6, 5}, step);
    theirs.mutable_grad() = numbers({6, 5}, step);
    optimizer.step();
    sgd.step();
  }
  EXPECT_TRUE(torch::equal(ours, theirs));
}

TEST(RmspropWarmUp, ContinuesFromASavedState) {
  torch::Tensor w = numbers({4, 5}, 0).requires_grad_();
  RmspropWarmUp optimizer{{w}};
  w.mutable_grad() = numbers({4, 5}, 1);
  optimizer.step();
  std::stringstream file;
  torch::save(optimizer, file);
  torch::Tensor copy = w.detach().clone().requires_grad_();
  copy.mutable_grad() = w.grad().clone();
  RmspropWarmUp restored{{copy}};
  torch::load(restored, file);
  optimizer.step();
  restored.step();
  EXPECT_TRUE(torch::equal(w, copy));
}

TEST(RmspropWarmUp, RefusesPartialGradientsAndARateOfZero) {
  class FirstHalf final : public GradientSource {
   public:
    ReceivedGradient received(const torch::Tensor&) const override {
      return {.whole = false, .parts = parts_};
    }

   private:
    std::array<gradient::GradientPart, 1> parts_{{{0, 10}}};
  };
  torch::Tensor w = numbers({4, 5}, 0).requires_grad_();
  w.mutable_grad() = numbers({4, 5}, 1);
  RmspropWarmUp optimizer{{w}};
  options_of(optimizer).source = std::make_shared<FirstHalf>();
  EXPECT_THROW(optimizer.step(), Error);
  options_of(optimizer).source = nullptr;
  optimizer.set_lr(0);
  EXPECT_THROW(optimizer.step(), Error);
}

}  // namespace
}  // namespace sluice::libtorch
