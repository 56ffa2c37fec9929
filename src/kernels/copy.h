// copy.h - memory from here to there.
#pragma once

#include <cstddef>

namespace sluice::kernels {

// From this many bytes on a result bypasses the cache: reading the lines that it is about to
// overwrite would cost more than finding it in the cache later gains. About one core's L2.
inline constexpr std::size_t kStreamBytes = std::size_t{2} << 20;

// REQUIRES: no overlap.
void copy(void* to, const void* from, std::size_t bytes);

}  // namespace sluice::kernels
