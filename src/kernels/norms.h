// norms.h - how large the elements of an array are, and how many are not finite.
//
// Norms are taken chunk by chunk. All arithmetic is in f64 and its order is fixed, so that every
// machine gets the same bits: within a chunk, element i is added to partial sum i mod 32, elements
// in order; then partial sums j and j + 16 are added for j < 16, then j and j + 8, and so on down
// to one. (The square of an f32, f16 or bf16 is exact in f64.) A NaN or an infinity makes the norm
// of its chunk NaN or infinite.
//
// REQUIRES: type is a float type, `from` is aligned to it. Thread-safety: no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/types.h"
#include "sluice/version.h"

namespace sluice::kernels {

// The sum of |x| of each chunk. The last chunk may be shorter.
// REQUIRES: chunk >= 1, `norms` has room for ceil(count / chunk).
void l1_norms(DataType type, const void* from, std::size_t count, std::size_t chunk, double* norms);

// The same with x * x: the squares of the L2 norms.
SLUICE_API void squared_l2_norms(DataType type, const void* from, std::size_t count,
                                 std::size_t chunk, double* norms);

// The number of elements that are infinite or NaN. While there are none, the call costs little more
// than reading the array.
std::uint64_t count_not_finite(DataType type, const void* from, std::size_t count);

}  // namespace sluice::kernels
