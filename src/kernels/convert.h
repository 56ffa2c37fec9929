// convert.h - f32 to the 16-bit wire types and back.
//
// Narrowing rounds to nearest even; what is too large becomes infinity, denormals are kept, a NaN
// stays a NaN (quiet, with its sign and the upper bits of its payload). Widening is exact, save
// that a signalling NaN may come out quiet. All else is the same bits on every machine.
//
// Pointers are aligned to the element and do not overlap. Thread-safety: no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sluice/types.h"

namespace sluice::kernels {

// What narrowing met. The counts cost next to nothing while they are zero.
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

// As widen(); returns the largest |from[i]|, before it is scaled: 0 if there is none, infinity or
// NaN if any element is that (NaN where both are).
float widen_checked(DataType type, float* to, const void* from, std::size_t count, float scale = 1);

}  // namespace sluice::kernels
