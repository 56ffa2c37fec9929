// minimal.cc - loops for the compiler to vectorise (-O3, once for each instruction set).
#include "bench/kernels/minimal.h"

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SLUICE_BEST_INSTRUCTIONS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SLUICE_BEST_INSTRUCTIONS
#endif

namespace sluice {

SLUICE_BEST_INSTRUCTIONS
void minimal_exchange(float* __restrict a, float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

SLUICE_BEST_INSTRUCTIONS
void minimal_add(float* __restrict c, const float* __restrict a, const float* __restrict b,
                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
}

}  // namespace sluice
