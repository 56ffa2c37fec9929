#include "torch/arrived_parts.h"

#include <cmath>
#include <numeric>

#include "kernels/norms.h"

namespace sluice {

ArrivedParts::ArrivedParts(const NamedTensors& parameters, std::size_t chunk) : chunk_{chunk} {
  for (const auto& [name, parameter] : parameters) {
    numbers_.emplace(parameter.unsafeGetTensorImpl(), gradients_.size());
    Gradient gradient{.count = static_cast<std::size_t>(parameter.numel())};
    if (may_be_sparse(parameter)) {
      gradient.squares.resize(gradient.count / chunk + 1);
      gradient.ranges.reserve(gradient.squares.size());
    }
    gradients_.push_back(std::move(gradient));
  }
}

void ArrivedParts::update(Reducer& reducer) {
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    Gradient& gradient = gradients_[i];
    gradient.decayed = reducer.holds_decay(i);
    if (!gradient.squares.empty()) update(gradient, reducer.arrived(i), reducer.result(i));
  }
}

void ArrivedParts::update(Gradient& gradient, std::span<const GradientPart> parts,
                          const std::byte* result) {
  gradient.ranges.clear();
  std::size_t arrived = 0;
  bool one_step = true;
  for (const GradientPart& part : parts) {
    double& square = gradient.squares[part.first / chunk_];
    squared_l2_norms(DataType::F32, result + part.first * sizeof(float), part.count, part.count,
                     &square);
    square /= static_cast<double>(part.steps) * static_cast<double>(part.steps);
    one_step = one_step && part.steps == 1;
    arrived += part.count;
    if (!gradient.ranges.empty() &&
        gradient.ranges.back().first + gradient.ranges.back().count == part.first) {
      gradient.ranges.back().count += part.count;
    } else {
      gradient.ranges.push_back({part.first, part.count});
    }
  }
  gradient.whole = arrived == gradient.count;
  // As without sparsity: the optimizer's own norm, bit for bit.
  gradient.norm =
      gradient.whole && one_step
          ? -1
          : std::sqrt(std::accumulate(gradient.squares.begin(), gradient.squares.end(), 0.0));
}

Arrival ArrivedParts::of(const torch::Tensor& parameter) const {
  const auto found = numbers_.find(parameter.unsafeGetTensorImpl());
  if (found == numbers_.end()) return {};
  const Gradient& gradient = gradients_[found->second];
  return {.whole = gradient.whole,
          .ranges = gradient.ranges,
          .decayed = gradient.decayed,
          .gradient_norm = gradient.norm};
}

}  // namespace sluice
