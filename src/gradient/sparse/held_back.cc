#include "gradient/sparse/held_back.h"

#include <algorithm>

#include "kernels/residual.h"

namespace sluice::gradient {

HeldBack::HeldBack(const std::vector<GradientSpec>& gradients, const SparseOptions& options,
                   bool late)
    : sparsity_{gradients, options},
      late_{late},
      residual_{sparsity_.chunks()},
      norms_(sparsity_.chunks().size()),
      decays_(gradients.size()),
      step_decays_(gradients.size()) {
  for (const GradientSpec& gradient : gradients) counts_.push_back(gradient.count);
}

void HeldBack::plan() {
  // Else the buckets of a step on its way still look at them, and find none.
  if (!late_) std::fill(step_decays_.begin(), step_decays_.end(), Decay{});
  sparsity_.plan();
}

Holding HeldBack::holding() {
  return {.residual = &residual_,
          .chunks = &sparsity_.chunks(),
          .step = {sparsity_.selected(), norms_},
          .decays = &step_decays_};
}

std::span<const float> HeldBack::norms() const {
  return sparsity_.sparse() ? std::span{norms_} : std::span<const float>{};
}

void HeldBack::set_decay(std::size_t i, const float* weights, float factor) {
  decays_[i] = {factor == 0 ? nullptr : weights, factor};
}

bool HeldBack::holds_decay(std::size_t i) const {
  return sparsity_.was_sparse() && !sparsity_.chunks().whole(i) && decays_[i].weights != nullptr;
}

void HeldBack::add_decay(std::size_t i, std::byte* slot, double loss_scale) {
  const Decay& decay = decays_[i];
  if (!sparsity_.sparse() || sparsity_.chunks().whole(i) || decay.weights == nullptr) return;
  if (!late_) {
    step_decays_[i] = decay;
    return;
  }
  const auto factor = static_cast<float>(decay.factor * loss_scale);
  kernels::hold(reinterpret_cast<float*>(slot), {.gradient = decay.weights, .scale = factor},
                counts_[i]);
}

}  // namespace sluice::gradient
