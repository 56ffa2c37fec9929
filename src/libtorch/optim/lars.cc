#include "sluice/torch/lars.h"

#include <ATen/Parallel.h>
#include <torch/torch.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/format.h"
#include "kernels/norms.h"
#include "kernels/optimizer.h"
#include "libtorch/optim/momentum_update.h"

namespace sluice {
namespace {

using gradient::GradientPart;
using libtorch::ParameterUpdate;

double squared_norm(DataType type, const void* from, std::size_t count) {
  double squared = 0;
  if (count > 0) kernels::squared_l2_norms(type, from, count, count, &squared);
  return squared;
}

// The squared norm of the latest received value of each part of a gradient, divided by the square
// of the number of steps in it.
class PartNorms {
 public:
  struct Part {
    std::size_t first;
    double squared;
  };

  void set(const GradientPart& part, double squared) {
    squared /= static_cast<double>(part.steps) * part.steps;
    const auto position = std::lower_bound(
        parts_.begin(), parts_.end(), part.first,
        [](const Part& candidate, std::size_t first) { return candidate.first < first; });
    if (position != parts_.end() && position->first == part.first) {
      position->squared = squared;
    } else {
      parts_.insert(position, {part.first, squared});
    }
  }
  void push_back(const Part& part) { parts_.push_back(part); }
  void clear() { parts_.clear(); }

  double sum() const {
    double sum = 0;
    for (const Part& part : parts_) sum += part.squared;
    return sum;
  }
  std::size_t size() const { return parts_.size(); }
  auto begin() const { return parts_.begin(); }
  auto end() const { return parts_.end(); }

 private:
  std::vector<Part> parts_;  // sorted by `first`
};

}  // namespace

struct Lars::Impl final : MomentumOptimizer::Impl {
  explicit Impl(const LarsOptions& options)
      : weight_decay{options.weight_decay}, eta{options.eta}, eps{options.eps} {}

  void scale() override;
  void scale_other_tensors();
  void set_scale(ParameterUpdate& update, double squared_weights, double squared_gradient) const;
  void add_state(libtorch::NamedTensors& to) const override;
  void load(torch::serialize::InputArchive& archive) override;

  double weight_decay;
  double eta;
  double eps;
  std::vector<PartNorms> norms;  // by parameter
};

Lars::Lars(std::vector<torch::Tensor> parameters, const LarsOptions& options)
    : MomentumOptimizer{
          std::move(parameters),
          std::make_unique<libtorch::MomentumOptions>(
              options.lr, libtorch::MomentumRule{.momentum = options.momentum,
                                                 .weight_decay = options.weight_decay,
                                                 .decay_one_dimensional = false,
                                                 .nesterov = options.nesterov,
                                                 .rate_place = options.momentum_correction
                                                                   ? LearningRateMode::Outside
                                                                   : options.rate_place}),
          std::make_unique<Impl>(options)} {}

// REQUIRES: the parameter has two or more dimensions; others have no weight decay.
void Lars::Impl::set_scale(ParameterUpdate& update, double squared_weights,
                           double squared_gradient) const {
  update.scale = kernels::lars_ratio(
      {.weights = std::sqrt(squared_weights), .gradient = std::sqrt(squared_gradient)},
      {.eta = eta, .decay = weight_decay, .epsilon = eps});
}

// One thread computes a whole norm, so the bits do not depend on the number of threads.
void Lars::Impl::scale() {
  norms.resize(velocities.size());
  const auto scale_flat = [&](ParameterUpdate& update) {
    const DataType type = *update.flat;
    const auto* const gradient = static_cast<const std::byte*>(update.gradient.data_ptr());
    const auto count = static_cast<std::size_t>(update.parameter.numel());
    PartNorms& parts = norms[update.index];
    if (update.received.whole) parts.clear();
    for (const GradientPart& part : update.received.parts)
      parts.set(part, squared_norm(type, gradient + part.first * size_of(type), part.count));
    set_scale(update, squared_norm(type, update.parameter.data_ptr(), count),
              update.received.whole ? squared_norm(type, gradient, count) : parts.sum());
  };
  at::parallel_for(0, static_cast<std::int64_t>(updates.size()), 1,
                   [&](std::int64_t begin, std::int64_t end) {
                     for (std::int64_t i = begin; i < end; ++i) {
                       ParameterUpdate& update = updates[static_cast<std::size_t>(i)];
                       if (update.flat && update.parameter.dim() > 1) scale_flat(update);
                     }
                   });
  scale_other_tensors();
}

// For tensors of other types or on other devices. All norms are copied to the CPU at once.
void Lars::Impl::scale_other_tensors() {
  const auto is_other = [](const ParameterUpdate& update) {
    return !update.flat && update.parameter.dim() > 1;
  };
  std::vector<torch::Tensor> tensors;
  for (const ParameterUpdate& update : updates) {
    if (!is_other(update)) continue;
    tensors.push_back(update.parameter);
    if (update.received.whole) tensors.push_back(update.gradient);
    for (const GradientPart& part : update.received.parts)
      tensors.push_back(libtorch::part_of(update.gradient, part));
  }
  if (tensors.empty()) return;
  std::vector<torch::Tensor> lengths = at::_foreach_norm(tensors, 2);
  for (torch::Tensor& length : lengths) length = length.to(lengths[0].device(), torch::kFloat64);
  const torch::Tensor squares = torch::stack(lengths).cpu().square();
  const auto* next = squares.data_ptr<double>();
  for (ParameterUpdate& update : updates) {
    if (!is_other(update)) continue;
    const double weights = *next++;
    PartNorms& parts = norms[update.index];
    const double gradient = update.received.whole ? *next++ : 0;
    if (update.received.whole) parts.clear();
    for (const GradientPart& part : update.received.parts) parts.set(part, *next++);
    set_scale(update, weights, update.received.whole ? gradient : parts.sum());
  }
}

void Lars::Impl::add_state(libtorch::NamedTensors& to) const {
  for (std::size_t i = 0; i < norms.size(); ++i) {
    const auto count = static_cast<std::int64_t>(norms[i].size());
    if (count == 0) continue;
    torch::Tensor parts = torch::empty({count, 2}, torch::kFloat64);
    auto* row = parts.data_ptr<double>();
    for (const auto& [first, squared] : norms[i]) {
      *row++ = static_cast<double>(first);
      *row++ = squared;
    }
    to.emplace_back(base::format("brought_{}", i), parts);  // the name in existing checkpoints
  }
}

void Lars::Impl::load(torch::serialize::InputArchive& archive) {
  norms.assign(velocities.size(), {});
  for (std::size_t i = 0; i < norms.size(); ++i) {
    torch::Tensor parts;
    if (!archive.try_read(base::format("brought_{}", i), parts, true)) continue;
    const auto* row = parts.data_ptr<double>();
    for (std::int64_t n = 0; n < parts.size(0); ++n, row += 2)
      norms[i].push_back({static_cast<std::size_t>(row[0]), row[1]});
  }
}

}  // namespace sluice
