// minimal.h - the least work of a kernel, as plain loops; the reference for our kernels.
#pragma once

#include <cstddef>
#include <span>

namespace sluice::bench {

// The all-reduce of two ranks in shared memory: sets a and b to a + b.
void minimal_exchange(float* a, float* b, std::size_t count);

// The all-reduce of any number of ranks, for elements [first, first + count).
void minimal_all_reduce(std::span<float* const> buffers, std::size_t first, std::size_t count);

// Sets c to a + b.
void minimal_add(float* c, const float* a, const float* b, std::size_t count);

}  // namespace sluice::bench
