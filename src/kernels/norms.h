// norms.h - one number a chunk that says how large its elements are.
//
// All arithmetic is in f64 and its order is fixed, so that every machine gets the same bits: within
// a chunk, element i is added to partial sum i mod 32, elements in order; then partial sums j and
// j + 16 are added for j < 16, then j and j + 8, and so on down to one. (The square of an f32, f16
// or bf16 is exact in f64.) NaN and infinity carry through to their chunk's norm.
//
// The last chunk may be shorter. REQUIRES: type is a float type, chunk is at least 1, `norms` has
// room for ceil(count / chunk). Thread-safety: no state.
#pragma once

#include <cstddef>

#include "sluice/types.h"

namespace sluice::kernels {

// The sum of |x|.
void l1_norms(DataType type, const void* from, std::size_t count, std::size_t chunk, double* norms);

// The sum of x * x: the square of the L2 norm.
void squared_l2_norms(DataType type, const void* from, std::size_t count, std::size_t chunk,
                      double* norms);

}  // namespace sluice::kernels
