// reduce.h - combines k arrays element by element, in one pass over memory.
//
//   target[i] = factor * (((s0[i] op s1[i]) op s2[i]) ...)         in the listed order
//
// The bits of a result depend only on the sources and their order. They do not depend on the vector
// width of the machine, the alignment, or the position of an element in the array. So ranks on
// different hosts get equal results.
//
//  Floats     F32 computes in f32, F64 in f64. F16 and BF16 are widened to f32, combined and
//             scaled there, and rounded once, to nearest even; too large values become infinity.
//             The factor is a separate multiplication after the last source, never fused with an
//             addition (the layer is compiled with -ffp-contract=off).
//  Integers   Sum and Product wrap around. The factor is ignored; the result is divided by
//             `divisor` and truncated towards zero.
//  Bool       Any byte but 0 is true. Results are 0 or 1.
//  Min, Max   of floats: -0 is less than +0, and if any of two or more sources is NaN, the result
//             is the quiet NaN 0x7fc00000 (or that of its type). Associative and commutative, bit
//             for bit.
//  NaN        A sum or product that contains a NaN is NaN, and so are a sum of opposite infinities
//             and a product of zero and infinity; a single NaN stays NaN. Sign and payload are not
//             promised.
//
// REQUIRES: the type and the operation are a legal pair (types.h); a target is one of the sources
// (exactly the same address) or overlaps none; pointers are aligned to the element. Large sums into
// targets that are not sources bypass the cache.
//
// Thread-safety: no state; calls on disjoint targets may run at the same time. Allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "sluice/types.h"

namespace sluice::kernels {

struct Reduction {
  DataType type = DataType::F32;
  ReduceOp op = ReduceOp::Sum;  // Mean: the sum, times `factor` or divided by `divisor`
  double factor = 1;            // for floats: converted to f32, or f64 for F64
  std::int64_t divisor = 1;     // for integers; at least 1
};

// The mean over n ranks: floats are multiplied by 1/n, integers are divided by n.
constexpr Reduction mean_over(int ranks, DataType type) {
  return {.type = type, .op = ReduceOp::Mean, .factor = 1.0 / ranks, .divisor = ranks};
}

// REQUIRES: at least one source. (Not `reduce`: std::reduce would be found as well.)
void reduce_into(const Reduction& reduction, void* target, std::span<const void* const> sources,
                 std::size_t count);

// Writes the same result to every target, in one pass. For two ranks that share memory, it reads
// both buffers once and writes both once. REQUIRES: at least one source and one target, targets
// distinct.
void reduce_to_all(const Reduction& reduction, std::span<void* const> targets,
                   std::span<const void* const> sources, std::size_t count);

}  // namespace sluice::kernels
