// momentum.h - one step of gradient descent with momentum, over any range of a tensor.
//
//   d = ratio * (g + decay * w)
//                          rate outside the velocity        folded into it
//                          u = momentum * u + d             u = momentum * u + rate * d
//   plain                  w = w - rate * u                 w = w - u
//   Nesterov               w = w - rate * (d + momentum u)  w = w - (rate * d + momentum * u)
//
// with the new u in the lower lines. `ratio` is LARS's (lars.h), else 1. While the rate stays the
// same both forms move w alike; when it changes, the folded velocity still holds the old rate.
//
// Of sparse gradients only what arrived is passed, with decay 0, since it is in the mean already;
// weights and velocity of all else stand still, so that a velocity counts its own updates.
//
// F32 computes in f32 and F64 in f64; every product and every sum is rounded by itself, and the
// constants once to the type, so that all machines get the same bits. Pointers are aligned to the
// element and nothing overlaps. Thread-safety: no state; disjoint ranges may run at the same time.
#pragma once

#include <cstddef>

#include "sluice/types.h"

namespace sluice::kernels {

struct MomentumStep {
  double rate = 0;
  double momentum = 0;
  double decay = 0;
  double ratio = 1;
  bool nesterov = false;
  bool folded = false;
};

// REQUIRES: type is F32 or F64.
void momentum_update(DataType type, void* weights, void* velocity, const void* gradient,
                     std::size_t count, const MomentumStep& step);

}  // namespace sluice::kernels
