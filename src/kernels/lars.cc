#include "kernels/lars.h"

#include <cassert>
#include <cmath>

#include "kernels/norms.h"

namespace sluice::kernels {
namespace {

double l2_norm(DataType type, const void* from, std::size_t count) {
  if (count == 0) return 0;
  double squared = 0;
  squared_l2_norms(type, from, count, count, &squared);
  return std::sqrt(squared);
}

}  // namespace

void lars_norms(DataType type, std::span<const LarsTensor> tensors, std::span<LarsNorms> norms) {
  assert(tensors.size() == norms.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    norms[i] = {.weights = l2_norm(type, tensors[i].weights, tensors[i].count),
                .gradient = l2_norm(type, tensors[i].gradient, tensors[i].count)};
  }
}

double lars_ratio(const LarsNorms& norms, const LarsRule& rule) {
  if (norms.weights == 0 || norms.gradient == 0) return 1;
  return rule.eta * norms.weights / (norms.gradient + rule.decay * norms.weights + rule.epsilon);
}

}  // namespace sluice::kernels
