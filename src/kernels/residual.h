// residual.h - a gradient that is held back, and what a step adds to it.
//
//   v[i] = r[i] + (scale * gradient[i] + decay * weights[i])       without weights: r + scale * g
//
// Every product and every sum is rounded to f32 by itself, so that all machines get the same bits.
// Each function returns the sum of |v| in f64, as l1_norms() would of v: infinite or NaN where an
// element is, and only there.
//
// Pointers are aligned to the element, and nothing overlaps but where it is said.
// Thread-safety: no state. Allocates nothing.
#pragma once

#include <cstddef>

namespace sluice::kernels {

// What a step adds.
struct Addend {
  const float* gradient = nullptr;
  float scale = 1;
  const float* weights = nullptr;  // null: no decay
  float decay = 0;

  // The same from another element on.
  Addend from(std::size_t first) const {
    return {gradient + first, scale, weights == nullptr ? nullptr : weights + first, decay};
  }
};

// r = v.
double hold(float* r, const Addend& addend, std::size_t count);

// to = v, r = 0. `to` may be the gradient, or begin before it and reach into it.
double hand_over(float* to, float* r, const Addend& addend, std::size_t count);

// to = v, and r stays.
double add_up(float* to, const float* r, const Addend& addend, std::size_t count);

// Nothing is written.
double weigh(const float* r, const Addend& addend, std::size_t count);

}  // namespace sluice::kernels
