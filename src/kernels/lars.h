// lars.h - the layer-wise rate of LARS (You, Gitman and Ginsburg, 2017).
//
//   ratio = eta * |w| / (|g| + decay * |w| + epsilon)         and 1 where |w| or |g| is zero
//
// with the L2 norms of a whole tensor; momentum_update() then moves the tensor by that ratio. The
// norms of many tensors are taken in one call.
//
// Of a sparse gradient |g| is put together from what each chunk last brought, divided by the steps
// that it had been held back for: the sum over chunks of |mean / steps|^2 is |g|^2.
//
// All in f64 and in norms.h's order, so that all machines get the same bits. Thread-safety: no
// state.
#pragma once

#include <cstddef>
#include <span>

#include "sluice/types.h"

namespace sluice::kernels {

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

// REQUIRES: type is a float type, norms has an entry a tensor.
void lars_norms(DataType type, std::span<const LarsTensor> tensors, std::span<LarsNorms> norms);

double lars_ratio(const LarsNorms& norms, const LarsRule& rule);

}  // namespace sluice::kernels
