// Trains with sparse gradients on flat arrays. Compares the kernels, applied to the elements that
// arrive, with a few lines of arithmetic in f64 that get only the list of these elements.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "gradient/reducer.h"
#include "kernels/norms.h"
#include "kernels/optimizer.h"
#include "tests/engine/ranks.h"

namespace sluice::gradient {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kCount = 500;
constexpr std::size_t kChunk = 32;
const std::vector<GradientSpec> kGradients = {{.name = "w", .count = kCount}};

// The gradient of a quadratic loss whose curvature and minimum depend on rank and element.
double gradient_at(int rank, std::size_t element, double w) {
  const double curvature = 0.5 + 0.4 * std::sin(static_cast<double>(element) + 7.0 * rank);
  return curvature * (w - std::cos(3.0 * static_cast<double>(element) + rank));
}

double initial_weight(std::size_t element) {
  return 2 * std::sin(0.7 * static_cast<double>(element));
}

struct Training {
  kernels::MomentumStep step;
  double eta = 0;  // of LARS; 0: no LARS
};

// r += g + decay w; for elements that arrive u = m u + mean(r), w -= rate u. Nesterov, LARS and the
// folded rate change this as their papers do.
class Naive {
 public:
  explicit Naive(const Training& training) : training_{training}, residuals_(kRanks) {
    for (auto& rank : residuals_) rank.resize(kCount);
    for (std::size_t e = 0; e < kCount; ++e) w.push_back(initial_weight(e));
  }

  // steps[e]: the number of steps that the received value of element e sums up, 0 if none arrived.
  // LARS measures received values, which include no decay in a dense step.
  void step(const std::vector<std::uint32_t>& steps, bool dense) {
    std::vector<double> mean(kCount);
    for (std::size_t e = 0; e < kCount; ++e) {
      for (int r = 0; r < kRanks; ++r)
        residuals_[static_cast<std::size_t>(r)][e] +=
            gradient_at(r, e, w[e]) + training_.step.decay * w[e];
      if (steps[e] == 0) continue;
      for (auto& rank : residuals_) mean[e] += std::exchange(rank[e], 0) / kRanks;
      latest_[e] = dense ? mean[e] - training_.step.decay * w[e] : mean[e] / steps[e];
    }
    const double ratio = training_.eta == 0 ? 1 : lars();
    const auto& [rate, m, decay, unused, nesterov, folded] = training_.step;
    for (std::size_t e = 0; e < kCount; ++e) {
      if (steps[e] == 0) continue;
      const double d = ratio * mean[e] * (folded ? rate : 1);
      u_[e] = m * u_[e] + d;
      w[e] -= (nesterov ? d + m * u_[e] : u_[e]) * (folded ? 1 : rate);
    }
  }

  std::vector<double> w;

 private:
  double lars() const {
    double ww = 0;
    double gg = 0;
    for (std::size_t e = 0; e < kCount; ++e) {
      ww += w[e] * w[e];
      gg += latest_[e] * latest_[e];
    }
    return training_.eta * std::sqrt(ww) /
           (std::sqrt(gg) + training_.step.decay * std::sqrt(ww) + 1e-9);
  }

  Training training_;
  std::vector<std::vector<double>> residuals_;
  std::vector<double> u_ = std::vector<double>(kCount);
  std::vector<double> latest_ =
      std::vector<double>(kCount);  // the latest received values, divided by their steps
};

class Sparse {
 public:
  Sparse(const Training& training, Communicator& comm)
      : training_{training}, rank_{comm.rank()}, reducer_{comm, kGradients, kOptions} {
    for (std::size_t e = 0; e < kCount; ++e) w.push_back(static_cast<float>(initial_weight(e)));
    reducer_.set_decay(0, w.data(), static_cast<float>(training.step.decay));
  }

  // Returns, for each element, the number of steps that its received value sums up.
  std::vector<std::uint32_t> step() {
    for (std::size_t e = 0; e < kCount; ++e)
      gradient()[e] = static_cast<float>(gradient_at(rank_, e, static_cast<double>(w[e])));
    reducer_.mark_ready(0);
    reducer_.finish();
    kernels::MomentumStep step = training_.step;
    if (training_.eta != 0) step.ratio = ratio();
    if (reducer_.includes_decay(0)) step.decay = 0;
    std::vector<std::uint32_t> steps(kCount, 0);
    for (const GradientPart& part : reducer_.received(0)) {
      kernels::momentum_update(DataType::F32, w.data() + part.first, u_.data() + part.first,
                               gradient() + part.first, part.count, step);
      for (std::size_t e = 0; e < part.count; ++e) steps[part.first + e] = part.steps;
    }
    return steps;
  }

  std::vector<float> w;

 private:
  static inline const GradientOptions kOptions{.sparse = {.sparsity = 0.8, .chunk = kChunk}};

  float* gradient() { return reinterpret_cast<float*>(reducer_.slot(0)); }

  double ratio() {
    double arrived[(kCount + kChunk - 1) / kChunk];
    kernels::squared_l2_norms(DataType::F32, gradient(), kCount, kChunk, arrived);
    for (const GradientPart& part : reducer_.received(0)) {
      squared_[part.first / kChunk] = arrived[part.first / kChunk] / part.steps / part.steps;
    }
    double gradients = 0;
    for (const double each : squared_) gradients += each;
    double weights = 0;
    kernels::squared_l2_norms(DataType::F32, w.data(), kCount, kCount, &weights);
    return kernels::lars_ratio({.weights = std::sqrt(weights), .gradient = std::sqrt(gradients)},
                               {.eta = training_.eta, .decay = training_.step.decay});
  }

  Training training_;
  int rank_;
  Reducer reducer_;
  std::vector<float> u_ = std::vector<float>(kCount);
  std::vector<double> squared_ = std::vector<double>((kCount + kChunk - 1) / kChunk);
};

void expect_same_training(const Training& training) {
  engine::run_ranks(kRanks, [&](Communicator& comm) {
    Naive naive{training};
    Sparse sparse{training, comm};
    double moved = 0;
    for (int step = 0; step < 60; ++step) {
      const std::vector<std::uint32_t> steps = sparse.step();
      naive.step(steps, step == 0);
      // Rounding of f32: sums of about ten values of the order of 1, in sixty steps.
      for (std::size_t e = 0; e < kCount; ++e) {
        ASSERT_NEAR(static_cast<double>(sparse.w[e]), naive.w[e], 2e-4) << step << ", " << e;
      }
    }
    for (std::size_t e = 0; e < kCount; ++e) moved += std::abs(naive.w[e] - initial_weight(e));
    EXPECT_GT(moved, 0.05 * kCount);
  });
}

TEST(SparseUpdate, PlainMomentum) {
  expect_same_training({.step = {.learning_rate = 0.02, .momentum = 0.9}});
}

TEST(SparseUpdate, Nesterov) {
  expect_same_training({.step = {.learning_rate = 0.02, .momentum = 0.9, .nesterov = true}});
}

TEST(SparseUpdate, RateFoldedIntoTheVelocity) {
  expect_same_training({.step = {.learning_rate = 0.02, .momentum = 0.9, .folded = true}});
}

TEST(SparseUpdate, WeightDecay) {
  expect_same_training({.step = {.learning_rate = 0.02, .momentum = 0.9, .decay = 0.1}});
}

TEST(SparseUpdate, Lars) {
  expect_same_training({.step = {.learning_rate = 1, .momentum = 0.9, .decay = 0.01}, .eta = 0.02});
}

}  // namespace
}  // namespace sluice::gradient
