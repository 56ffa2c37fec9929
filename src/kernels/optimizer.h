// optimizer.h - the arithmetic of optimizer steps: momentum, and the layer-wise rate of LARS.
//
// Every product and every sum is rounded by itself, and constants are rounded once to the type, so
// that all machines get the same bits. Thread-safety: no state; disjoint ranges may be updated at
// the same time.
#pragma once

#include <cstddef>
#include <span>

#include "sluice/types.h"
#include "sluice/version.h"

namespace sluice::kernels {

struct MomentumStep {
  double learning_rate = 0;
  double momentum = 0;
  double decay = 0;
  double ratio = 1;       // of LARS, below
  bool nesterov = false;  // use Nesterov momentum
  bool folded = false;    // the velocity contains the learning rate
};

// One step of gradient descent with momentum, over any range of a tensor:
//
//   d = ratio * (g + decay * w)
//                  not folded                         folded
//                  u = momentum * u + d               u = momentum * u + lr * d
//   plain          w = w - lr * u                     w = w - u
//   Nesterov       w = w - lr * (d + momentum * u)    w = w - (lr * d + momentum * u)
//
// The lower lines use the new u. While the learning rate stays the same, both forms give the same
// weights; when it changes, a folded velocity still contains the old one.
//
// For sparse gradients, call this for the chunks that arrived, with decay 0: their mean contains
// the decay already. The other weights and velocities do not change.
//
// REQUIRES: type is F32 or F64 (the type of the arithmetic, too), pointers are aligned to it and do
// not overlap.
SLUICE_API void momentum_update(DataType type, void* weights, void* velocity, const void* gradient,
                                std::size_t count, const MomentumStep& step);

struct LarsRule {
  double eta = 0.001;
  double decay = 0;
  double epsilon = 1e-9;
};

struct LarsTensor {
  const void* weights = nullptr;
  const void* gradient = nullptr;
  std::size_t count = 0;
};

struct LarsNorms {
  double weights = 0;
  double gradient = 0;
};

// The L2 norms of many tensors, in f64 and in the order of norms.h.
// REQUIRES: type is a float type, norms has an entry for each tensor.
void lars_norms(DataType type, std::span<const LarsTensor> tensors, std::span<LarsNorms> norms);

// The layer-wise rate of LARS (You, Gitman and Ginsburg, 2017):
//
//   ratio = eta * |w| / (|g| + decay * |w| + epsilon)         or 1 where |w| or |g| is zero
//
// For a sparse gradient, |g|^2 is the sum over chunks of |mean / steps|^2, with the last mean of
// each chunk and the number of steps that it covers.
SLUICE_API double lars_ratio(const LarsNorms& norms, const LarsRule& rule);

}  // namespace sluice::kernels
