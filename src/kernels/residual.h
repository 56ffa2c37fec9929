// residual.h - adds a step's gradient to a residual: the sum of the gradients not sent yet.
//
//   v[i] = r[i] + (scale * gradient[i] + decay * weights[i])       without weights: r + scale * g
//
// Every product and every sum is rounded to f32 by itself, so that all machines get the same bits.
// Each function returns the sum of |v| in f64, with the same bits as l1_norms() of v. It is
// infinite or NaN if an element is, and finite otherwise.
//
// REQUIRES: pointers are aligned to the element; nothing overlaps, except where it is allowed
// below. Thread-safety: no state. Allocates nothing.
#pragma once

#include <cstddef>

namespace sluice::kernels {

// The addend of a residual in one step.
struct Addend {
  const float* gradient = nullptr;
  float scale = 1;
  const float* weights = nullptr;  // null: no decay
  float decay = 0;

  // The same, beginning at another element.
  Addend from(std::size_t first) const {
    return {gradient + first, scale, weights == nullptr ? nullptr : weights + first, decay};
  }
};

// r = v.
double accumulate(float* r, const Addend& addend, std::size_t count);

// to = v, r = 0. `to` may be the gradient, or begin before it and reach into it.
double drain(float* to, float* r, const Addend& addend, std::size_t count);

// to = v; r does not change.
double sum_to(float* to, const float* r, const Addend& addend, std::size_t count);

// Only returns the norm of v.
double norm_of_sum(const float* r, const Addend& addend, std::size_t count);

}  // namespace sluice::kernels
