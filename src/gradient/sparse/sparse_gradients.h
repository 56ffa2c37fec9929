// sparse_gradients.h - one rank's side of sparse steps: what it holds back of its gradients, and
// their decay, which waits as long as they do.
//
// Thread-safety: one thread at a time; a Holding is for the errands of the step that was planned
// last, until that step is complete. REQUIRES: unless `late`, that is before the next plan().
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gradient/sparse/residual.h"
#include "gradient/sparse/sparse_bucket.h"
#include "gradient/sparse/sparsity.h"

namespace sluice::gradient {

class SparseGradients {
 public:
  // `late`: the weights may change while a gradient is on its way, so that its decay must be added
  // before it leaves.
  SparseGradients(const std::vector<GradientSpec>& gradients, const SparseOptions& options,
                  bool late);

  Sparsity& sparsity() { return sparsity_; }
  const Sparsity& sparsity() const { return sparsity_; }
  std::span<float> residual() { return residual_.values(); }
  bool possible() const { return sparsity_.chunks().size() > 0; }

  // The next step is planned, and has no gradients yet.
  void plan();
  SparseContext holding();
  // By chunk, as the buckets of the step leave them; none in a dense step.
  std::span<const float> norms() const;

  void set_decay(std::size_t i, const float* weights, float factor);
  // Whether the mean of the step that was completed last holds decay.
  bool holds_decay(std::size_t i) const;
  // There is a gradient: its decay counts in this step. `loss_scale`: what the gradient carries.
  void add_decay(std::size_t i, std::byte* slot, double loss_scale);

 private:
  Sparsity sparsity_;
  bool late_;
  std::vector<std::size_t> counts_;  // elements, by gradient
  Residual residual_;
  std::vector<float> norms_;
  std::vector<WeightDecay> decays_;       // by gradient, as they were set
  std::vector<WeightDecay> step_decays_;  // those that the buckets of the step are to add
};

}  // namespace sluice::gradient
