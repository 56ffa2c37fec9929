// reduce.h - combines k arrays element by element, in one pass over memory.
//
//   target[i] = factor * (((s0[i] op s1[i]) op s2[i]) ...)         in the listed order
//
// The bits of a result depend on the sources and their order alone: not on the vector width of the
// machine, the alignment, or where an element lies in the array. So ranks on different hosts agree.
//
//  Floats     F32 adds and scales in f32, F64 in f64. F16 and BF16 are widened to f32, combined and
//             scaled there, and rounded once, to nearest even; what is too large becomes infinity.
//             The factor is a multiplication of its own after the last source, never fused with an
//             addition (the layer is compiled with -ffp-contract=off).
//  Integers   Sum wraps around. The factor is not used; the result is divided by `divisor`,
//             truncated towards zero.
//  Min, Max   of floats: -0 is less than +0, and if any of two or more sources is NaN the result is
//             the quiet NaN 0x7fc00000 (or its like). Associative and commutative bit for bit.
//  NaN        A sum with a NaN, or of opposite infinities, is NaN, and a single NaN stays one; sign
//             and payload are not promised.
//
// A target may be one of the sources (exactly the same address); otherwise nothing overlaps.
// Pointers are aligned to the element. Large sums into targets that are no sources bypass the
// cache.
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
  ReduceOp op = ReduceOp::Sum;  // Mean adds; factor and divisor make the mean of it
  double factor = 1;            // floats: taken as f32, as f64 for F64
  std::int64_t divisor = 1;     // integers, at least 1
};

// What divides a sum over n ranks by n: floats are multiplied by 1/n, integers divided by n.
constexpr Reduction mean_over(int ranks, DataType type) {
  return {.type = type, .op = ReduceOp::Mean, .factor = 1.0 / ranks, .divisor = ranks};
}

// REQUIRES: at least one source. (Not `reduce`: std::reduce would be found as well.)
void reduce_into(const Reduction& reduction, void* target, std::span<const void* const> sources,
                 std::size_t count);

// The same result into every target, still in one pass: two ranks that share memory read both
// buffers once and write both once. REQUIRES: at least one source and one target, targets distinct.
void reduce_to_all(const Reduction& reduction, std::span<void* const> targets,
                   std::span<const void* const> sources, std::size_t count);

}  // namespace sluice::kernels
