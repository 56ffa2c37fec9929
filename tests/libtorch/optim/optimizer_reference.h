// optimizer_reference.h - Sgd and Lars in a few lines of arithmetic in f64.
#pragma once

#include <gtest/gtest.h>
#include <torch/torch.h>

#include <cmath>
#include <map>
#include <vector>

#include "libtorch/optim/momentum_update.h"
#include "sluice/torch/sgd.h"

namespace sluice::libtorch {

inline constexpr int kOptimizerSteps = 12;

// Deterministic values that differ in every element.
inline torch::Tensor numbers(const std::vector<std::int64_t>& shape, double phase,
                             torch::ScalarType type = torch::kFloat64) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return torch::arange(count, torch::kFloat64).mul(0.37).add(phase).sin().reshape(shape).to(type);
}

inline torch::Tensor parameter(const std::vector<std::int64_t>& shape, double phase,
                               torch::ScalarType type = torch::kFloat64) {
  return numbers(shape, phase, type).requires_grad_();
}

// A learning rate that changes at every step.
inline double rate(int step) { return 0.1 * (1 + 0.5 * std::cos(step)); }

inline torch::Tensor gradient(const std::vector<std::int64_t>& shape, int step) {
  return numbers(shape, 10.0 + step);
}

// The state of one parameter in the reference: weights w and velocities u.
struct Reference {
  std::vector<double> w;
  std::vector<double> u;
  double previous_rate = 0;
};

struct ReferenceRule {
  double momentum = 0.9;
  double decay = 0;
  bool nesterov = false;
  bool folded = false;
  bool corrected = false;  // rescales the velocity when the rate changes, as in Goyal et al.
  double eta = 0;          // 0: no LARS
  double eps = 0;
};

inline double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

inline std::vector<double> values_of(const torch::Tensor& tensor) {
  const torch::Tensor flat = tensor.detach().to(torch::kFloat64).contiguous().view({-1});
  return {flat.data_ptr<double>(), flat.data_ptr<double>() + flat.numel()};
}

inline void step_reference(Reference& r, const std::vector<double>& g, double lr,
                           const ReferenceRule& rule) {
  double s = 1;
  if (rule.eta > 0 && norm(r.w) > 0 && norm(g) > 0) {
    s = rule.eta * norm(r.w) / (norm(g) + rule.decay * norm(r.w) + rule.eps);
  }
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double d = s * (g[i] + rule.decay * r.w[i]);
    if (rule.folded) {
      const double correction = rule.corrected && r.previous_rate > 0 ? lr / r.previous_rate : 1;
      r.u[i] = rule.momentum * correction * r.u[i] + lr * d;
      r.w[i] -= rule.nesterov ? lr * d + rule.momentum * r.u[i] : r.u[i];
    } else {
      r.u[i] = rule.momentum * r.u[i] + d;
      r.w[i] -= lr * (rule.nesterov ? d + rule.momentum * r.u[i] : r.u[i]);
    }
  }
  r.previous_rate = lr;
}

inline Reference reference_of(const torch::Tensor& tensor) {
  const std::vector<double> w = values_of(tensor);
  return {w, std::vector<double>(w.size(), 0.0)};
}

// Both use f64. They round in another order; the tolerance covers a few roundings per step.
inline void expect_near(const torch::Tensor& tensor, const Reference& reference,
                        double tolerance = 1e-13) {
  const std::vector<double> w = values_of(tensor);
  ASSERT_EQ(w.size(), reference.w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    ASSERT_NEAR(w[i], reference.w[i], tolerance) << "element " << i;
  }
}

struct SgdForm {
  bool nesterov;
  LearningRateMode mode;
  bool correction;
};

// Received gradients by parameter; gradients that are not listed are whole.
class ListedGradients final : public GradientSource {
 public:
  ReceivedGradient& operator[](const torch::Tensor& parameter) {
    return listed_[parameter.unsafeGetTensorImpl()];
  }

  ReceivedGradient received(const torch::Tensor& parameter) const override {
    const auto found = listed_.find(parameter.unsafeGetTensorImpl());
    return found == listed_.end() ? ReceivedGradient{} : found->second;
  }

 private:
  std::map<const void*, ReceivedGradient> listed_;
};

}  // namespace sluice::libtorch
