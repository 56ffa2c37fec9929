// minimal.cc - loops that the compiler vectorises (-O3, once for each instruction set).
#include "bench/kernels/minimal.h"

#include <algorithm>
#include <array>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define SLUICE_BEST_INSTRUCTIONS __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define SLUICE_BEST_INSTRUCTIONS
#endif

namespace sluice::bench {

SLUICE_BEST_INSTRUCTIONS
void minimal_exchange(float* __restrict a, float* __restrict b, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i];
    a[i] = sum;
    b[i] = sum;
  }
}

namespace {

// A block of sums stays in the first-level cache, so memory is read once and written once.
SLUICE_BEST_INSTRUCTIONS
void all_reduce_any(std::span<float* const> buffers, std::size_t first, std::size_t count) {
  std::array<float, 1024> sums;
  for (std::size_t done = 0; done < count; done += sums.size()) {
    const std::size_t part = std::min(sums.size(), count - done);
    std::memcpy(sums.data(), buffers[0] + first + done, part * sizeof(float));
    for (float* const buffer : buffers.subspan(1)) {
      const float* const values = buffer + first + done;
      for (std::size_t i = 0; i < part; ++i) sums[i] += values[i];
    }
    for (float* const buffer : buffers)
      std::memcpy(buffer + first + done, sums.data(), part * sizeof(float));
  }
}

SLUICE_BEST_INSTRUCTIONS
void all_reduce_4(float* a, float* b, float* c, float* d, std::size_t count) {
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) a[i] = b[i] = c[i] = d[i] = a[i] + b[i] + c[i] + d[i];
}

SLUICE_BEST_INSTRUCTIONS
void all_reduce_8(std::span<float* const> buffers, std::size_t first, std::size_t count) {
  float* const a = buffers[0] + first;
  float* const b = buffers[1] + first;
  float* const c = buffers[2] + first;
  float* const d = buffers[3] + first;
  float* const e = buffers[4] + first;
  float* const f = buffers[5] + first;
  float* const g = buffers[6] + first;
  float* const h = buffers[7] + first;
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) {
    const float sum = a[i] + b[i] + c[i] + d[i] + e[i] + f[i] + g[i] + h[i];
    a[i] = b[i] = c[i] = d[i] = e[i] = f[i] = g[i] = h[i] = sum;
  }
}

}  // namespace

void minimal_all_reduce(std::span<float* const> buffers, std::size_t first, std::size_t count) {
  if (buffers.size() == 2) return minimal_exchange(buffers[0] + first, buffers[1] + first, count);
  if (buffers.size() == 4) {
    return all_reduce_4(buffers[0] + first, buffers[1] + first, buffers[2] + first,
                        buffers[3] + first, count);
  }
  if (buffers.size() == 8) return all_reduce_8(buffers, first, count);
  all_reduce_any(buffers, first, count);
}

SLUICE_BEST_INSTRUCTIONS
void minimal_add(float* __restrict c, const float* __restrict a, const float* __restrict b,
                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) c[i] = a[i] + b[i];
}

}  // namespace sluice::bench
