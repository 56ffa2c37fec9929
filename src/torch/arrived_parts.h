// arrived_parts.h - which parts of gradients a sparse step brought, as an optimizer asks for them.
//
// Lars scales by the norm of a whole gradient, of which a sparse step shows a part: the norm is put
// together from what each chunk was when it last arrived, divided by the steps that it had been
// held back for.
//
// In the steady state nothing is allocated. Thread-safety: one thread at a time.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <unordered_map>
#include <vector>

#include "gradient/reducer.h"
#include "sluice/torch/arrivals.h"
#include "torch/weights.h"

namespace sluice {

// A matrix or more, whose elements lie in its memory one after the other.
inline bool may_be_sparse(const torch::Tensor& parameter) {
  return parameter.scalar_type() == torch::kFloat && parameter.dim() > 1 &&
         parameter.is_non_overlapping_and_dense();
}

class ArrivedParts final : public Arrivals {
 public:
  // `parameters` in the order of the reducer's gradients; `chunk` as in SparseOptions.
  ArrivedParts(const NamedTensors& parameters, std::size_t chunk);

  // After a finish() that has handed out gradients.
  void update(Reducer& reducer);

  // Of tensors that it does not know everything arrives.
  Arrival of(const torch::Tensor& parameter) const override;

 private:
  struct Gradient {
    std::size_t count = 0;
    bool whole = true;
    bool decayed = false;
    double norm = -1;
    std::vector<double> squares;  // of the norm a step, by chunk
    std::vector<ElementRange> ranges;
  };
  void update(Gradient& gradient, std::span<const GradientPart> parts, const std::byte* result);

  std::size_t chunk_;
  std::unordered_map<const c10::TensorImpl*, std::size_t> numbers_;
  std::vector<Gradient> gradients_;
};

}  // namespace sluice
