// norms.cc - count_not_finite() works block by block, as narrow() in convert.cc does.
#include "kernels/norms.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norms.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>
#include <limits>

#include "kernels/vectors_inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Loads as many elements as a vector of f64 has, as f64.
struct FromF64 {
  using Stored = double;
  static HWY_INLINE hn::Vec<Wide> load(const double* from) { return hn::LoadU(Wide{}, from); }
};

struct FromF32 {
  using Stored = float;
  using D = hn::Rebind<float, Wide>;
  static HWY_INLINE hn::Vec<Wide> load(const float* from) {
    return hn::PromoteTo(Wide{}, hn::LoadU(D{}, from));
  }
};

struct FromF16 {
  using Stored = std::uint16_t;
  using D = hn::Rebind<float, Wide>;
  static HWY_INLINE hn::Vec<Wide> load(const std::uint16_t* from) {
    const hn::Rebind<std::uint16_t, D> d16;
    return hn::PromoteTo(Wide{}, widen_f16(D{}, hn::LoadU(d16, from)));
  }
};

struct FromBf16 {
  using Stored = std::uint16_t;
  using D = hn::Rebind<float, Wide>;
  static HWY_INLINE hn::Vec<Wide> load(const std::uint16_t* from) {
    const hn::Rebind<std::uint16_t, D> d16;
    return hn::PromoteTo(Wide{}, widen_bf16(D{}, hn::LoadU(d16, from)));
  }
};

template <bool kSquare, class V>
HWY_INLINE V term_of(V value) {
  if constexpr (kSquare) {
    return hn::Mul(value, value);
  } else {
    return hn::Abs(value);
  }
}

template <class From, bool kSquare>
HWY_NOINLINE double chunk_norm(const void* chunk, std::size_t count) {
  using Stored = typename From::Stored;
  const auto* from = static_cast<const Stored*>(chunk);
  PartialSums sums;
  const std::size_t whole = count / kPartialSums * kPartialSums;
  for (std::size_t i = 0; i < whole; i += kPartialSums) {
    HWY_UNROLL(kSumsUnroll)
    for (std::size_t v = 0; v < kWideVectors; ++v) {
      sums.add(v, term_of<kSquare>(From::load(from + i + v * kWideElements)));
    }
  }
  if (whole < count) {  // adding zeros changes no sum
    Stored rest[kPartialSums] = {};
    std::memcpy(rest, from + whole, (count - whole) * sizeof(Stored));
    for (std::size_t v = 0; v < kWideVectors; ++v) {
      sums.add(v, term_of<kSquare>(From::load(rest + v * kWideElements)));
    }
  }
  return sums.total();
}

template <bool kSquare>
HWY_INLINE double chunk_norm_of(DataType type, const void* chunk, std::size_t count) {
  switch (type) {
    case DataType::F32:
      return chunk_norm<FromF32, kSquare>(chunk, count);
    case DataType::F64:
      return chunk_norm<FromF64, kSquare>(chunk, count);
    case DataType::F16:
      return chunk_norm<FromF16, kSquare>(chunk, count);
    case DataType::BF16:
      return chunk_norm<FromBf16, kSquare>(chunk, count);
    default:
      assert(false && "norms are of floats");
      return 0;
  }
}

double l1_chunk(DataType type, const void* chunk, std::size_t count) {
  return chunk_norm_of<false>(type, chunk, count);
}

double squared_l2_chunk(DataType type, const void* chunk, std::size_t count) {
  return chunk_norm_of<true>(type, chunk, count);
}

template <class T>
HWY_INLINE T largest_magnitude(const T* from, std::size_t count) {
  const hn::ScalableTag<T> d;
  constexpr std::size_t n = hn::MaxLanes(hn::ScalableTag<T>{});
  constexpr T magnitude = std::numeric_limits<T>::max();
  const auto mask = hn::Set(d, magnitude);
  auto first = hn::Zero(d);
  auto second = hn::Zero(d);
  std::size_t i = 0;
  for (; i + 2 * n <= count; i += 2 * n) {
    first = hn::Max(first, hn::And(hn::LoadU(d, from + i), mask));
    second = hn::Max(second, hn::And(hn::LoadU(d, from + i + n), mask));
  }
  T largest = largest_element(d, hn::Max(first, second));
  for (; i < count; ++i) largest = std::max(largest, static_cast<T>(from[i] & magnitude));
  return largest;
}

std::int16_t largest_of_16(const std::int16_t* from, std::size_t count) {
  return largest_magnitude(from, count);
}
std::int32_t largest_of_32(const std::int32_t* from, std::size_t count) {
  return largest_magnitude(from, count);
}
std::int64_t largest_of_64(const std::int64_t* from, std::size_t count) {
  return largest_magnitude(from, count);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {
namespace {

HWY_EXPORT(l1_chunk);
HWY_EXPORT(squared_l2_chunk);
HWY_EXPORT(largest_of_16);
HWY_EXPORT(largest_of_32);
HWY_EXPORT(largest_of_64);

using ChunkNorm = double (*)(DataType, const void*, std::size_t);

void norms_of_chunks(ChunkNorm norm, DataType type, const void* from, std::size_t count,
                     std::size_t chunk, double* norms) {
  assert(chunk > 0);
  const auto* bytes = static_cast<const std::byte*>(from);
  for (std::size_t first = 0; first < count; first += chunk) {
    *norms++ = norm(type, bytes + first * size_of(type), std::min(chunk, count - first));
  }
}

template <class T>
std::uint64_t count_at_least(T (*largest)(const T*, std::size_t), const void* data,
                             std::size_t count, T infinity) {
  constexpr std::size_t block = 4096;  // is still in L1 when its elements are counted
  const auto* from = static_cast<const T*>(data);
  std::uint64_t counted = 0;
  for (std::size_t i = 0; i < count; i += block) {
    const std::size_t size = std::min(block, count - i);
    if (largest(from + i, size) < infinity) continue;
    counted +=
        static_cast<std::uint64_t>(std::count_if(from + i, from + i + size, [infinity](T value) {
          return static_cast<T>(value & std::numeric_limits<T>::max()) >= infinity;
        }));
  }
  return counted;
}

}  // namespace

void l1_norms(DataType type, const void* from, std::size_t count, std::size_t chunk,
              double* norms) {
  norms_of_chunks(HWY_DYNAMIC_DISPATCH(l1_chunk), type, from, count, chunk, norms);
}

void squared_l2_norms(DataType type, const void* from, std::size_t count, std::size_t chunk,
                      double* norms) {
  norms_of_chunks(HWY_DYNAMIC_DISPATCH(squared_l2_chunk), type, from, count, chunk, norms);
}

std::uint64_t count_not_finite(DataType type, const void* from, std::size_t count) {
  switch (type) {
    case DataType::F32:
      return count_at_least(HWY_DYNAMIC_DISPATCH(largest_of_32), from, count, 0x7f800000);
    case DataType::F64:
      return count_at_least(HWY_DYNAMIC_DISPATCH(largest_of_64), from, count,
                            std::int64_t{0x7ff0000000000000});
    case DataType::F16:
      return count_at_least(HWY_DYNAMIC_DISPATCH(largest_of_16), from, count, std::int16_t{0x7c00});
    case DataType::BF16:
      return count_at_least(HWY_DYNAMIC_DISPATCH(largest_of_16), from, count, std::int16_t{0x7f80});
    default:
      assert(false && "integers are always finite");
      return 0;
  }
}

}  // namespace sluice::kernels
#endif
