#include "gradient/sparse/sparse_gradients.h"

#include <algorithm>

#include "kernels/residual.h"

namespace sluice::gradient {

SparseGradients::SparseGradients(const std::vector<GradientSpec>& gradients,
                                 const SparseOptions& options, bool late)
    : sparsity_{gradients, options},
      late_{late},
      residual_{sparsity_.chunks()},
      norms_(sparsity_.chunks().size()),
      decays_(gradients.size()),
      step_decays_(gradients.size()) {
  for (const GradientSpec& gradient : gradients) counts_.push_back(gradient.count);
}

void SparseGradients::plan() {
  // Else the buckets of a step on its way still look at them, and find none.
  if (!late_) std::fill(step_decays_.begin(), step_decays_.end(), WeightDecay{});
  sparsity_.plan();
}

SparseContext SparseGradients::holding() {
  return {.residual = &residual_,
          .chunks = &sparsity_.chunks(),
          .step = {sparsity_.selected(), norms_},
          .decays = &step_decays_};
}

std::span<const float> SparseGradients::norms() const {
  return sparsity_.sparse() ? std::span{norms_} : std::span<const float>{};
}

void SparseGradients::set_decay(std::size_t i, const float* weights, float factor) {
  decays_[i] = {factor == 0 ? nullptr : weights, factor};
}

bool SparseGradients::holds_decay(std::size_t i) const {
  return sparsity_.was_sparse() && !sparsity_.chunks().whole(i) && decays_[i].weights != nullptr;
}

void SparseGradients::add_decay(std::size_t i, std::byte* slot, double loss_scale) {
  const WeightDecay& decay = decays_[i];
  if (!sparsity_.sparse() || sparsity_.chunks().whole(i) || decay.weights == nullptr) return;
  if (!late_) {
    step_decays_[i] = decay;
    return;
  }
  const auto factor = static_cast<float>(decay.factor * loss_scale);
  kernels::accumulate(reinterpret_cast<float*>(slot), {.gradient = decay.weights, .scale = factor},
                counts_[i]);
}

}  // namespace sluice::gradient
