// minimal.h - the least that any kernel must do, written as plainly as can be: what ours are held
// to.
#pragma once

#include <cstddef>
#include <span>

namespace sluice::bench {

// The all-reduce of two ranks in shared memory: a and b both become a + b.
void minimal_exchange(float* a, float* b, std::size_t count);

// The all-reduce of any number of ranks, of elements [first, first + count).
void minimal_all_reduce(std::span<float* const> buffers, std::size_t first, std::size_t count);

// c becomes a + b.
void minimal_add(float* c, const float* a, const float* b, std::size_t count);

}  // namespace sluice::bench
