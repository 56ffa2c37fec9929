// backward.h - when a step's gradients are ready, and which leave together.
//
// A third of a step is taken to be forward and two thirds backward, which is what the products
// cost; within each, a layer has its part of the floating-point operations of plan/'s table. So the
// large gradients of a network's end come early, as they do.
#pragma once

#include <vector>

#include "recipe/models.h"
#include "recipe/recipe.h"
#include "sluice/status.h"

namespace sluice::simulate {

inline constexpr double kForwardPart = 1.0 / 3;

struct ReadyBucket {
  double ready = 0;         // part of the step's compute that is done by then
  double dense_bytes = 0;   // on the wire, of what is never held back
  double sparse_bytes = 0;  // on the wire, of what sparsity thins out
  double bytes(double sparsity) const { return dense_bytes + sparse_bytes * (1 - sparsity); }
};

// In the order in which they leave. With double buffering it is one that is ready at the end.
Result<std::vector<ReadyBucket>> ready_buckets(const recipe::ModelTable& model,
                                               const recipe::Recipe& recipe, double sparsity);

// Bytes of the norms that choose the chunks of a sparse step.
double norm_bytes(const recipe::ModelTable& model, const recipe::Recipe& recipe);

}  // namespace sluice::simulate
