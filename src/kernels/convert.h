// convert.h - copies memory unchanged, or converts f32 to the 16-bit wire types and back.
//
// Narrowing rounds to nearest even. A value that is too large becomes infinity, denormals are kept,
// and a NaN stays a NaN (quiet, with its sign and the upper bits of its payload). Widening is
// exact, except that a signalling NaN may become quiet. All other results are the same bits on
// every machine.
//
// REQUIRES: pointers are aligned to the element and do not overlap. Thread-safety: no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/types.h"

namespace sluice::kernels {

// From this many bytes on, results are written past the cache: reading the cache lines that are
// about to be overwritten would cost more than a later hit saves. About the L2 cache of one core.
inline constexpr std::size_t kStreamBytes = std::size_t{2} << 20;

// Copies bytes of any alignment.
void copy(void* to, const void* from, std::size_t bytes);

// Elements that are infinite or NaN after narrowing. While there are none, counting costs next to
// nothing.
struct ConvertCounts {
  std::uint64_t overflow = 0;  // finite before, infinite now
  std::uint64_t inf = 0;       // infinite before and now
  std::uint64_t nan = 0;       // NaN now

  ConvertCounts& operator+=(const ConvertCounts& other) {
    overflow += other.overflow;
    inf += other.inf;
    nan += other.nan;
    return *this;
  }
  bool operator==(const ConvertCounts&) const = default;
};

// to[i] = round(scale * from[i]), the product in f32. REQUIRES: type is F16 or BF16.
ConvertCounts narrow(DataType type, void* to, const float* from, std::size_t count,
                     float scale = 1);

// to[i] = scale * from[i], in f32. REQUIRES: type is F16 or BF16.
void widen(DataType type, float* to, const void* from, std::size_t count, float scale = 1);

// As widen(). Returns the largest |from[i]| before scaling: 0 if there are no elements, NaN if any
// element is NaN, else infinity if any is infinite.
float widen_checked(DataType type, float* to, const void* from, std::size_t count, float scale = 1);

}  // namespace sluice::kernels
