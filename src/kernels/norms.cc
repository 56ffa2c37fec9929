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

#include "kernels/lanes_inl.h"
#include "kernels/partial_sums_inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As many elements as a vector of f64 has lanes.
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
HWY_INLINE V size_of_each(V value) {
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
      sums.add(v, size_of_each<kSquare>(From::load(from + i + v * kWideLanes)));
    }
  }
  if (whole < count) {  // adding the size of zero changes no sum
    Stored rest[kPartialSums] = {};
    std::memcpy(rest, from + whole, (count - whole) * sizeof(Stored));
    for (std::size_t v = 0; v < kWideVectors; ++v) {
      sums.add(v, size_of_each<kSquare>(From::load(rest + v * kWideLanes)));
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
    case DataType::I32:
    case DataType::I64:
      break;
  }
  assert(false && "norms are of floats");
  return 0;
}

double l1_chunk(DataType type, const void* chunk, std::size_t count) {
  return chunk_norm_of<false>(type, chunk, count);
}

double squared_l2_chunk(DataType type, const void* chunk, std::size_t count) {
  return chunk_norm_of<true>(type, chunk, count);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {
namespace {

HWY_EXPORT(l1_chunk);
HWY_EXPORT(squared_l2_chunk);

using ChunkNorm = double (*)(DataType, const void*, std::size_t);

void every_chunk(ChunkNorm norm, DataType type, const void* from, std::size_t count,
                 std::size_t chunk, double* norms) {
  assert(chunk > 0);
  const auto* bytes = static_cast<const std::byte*>(from);
  for (std::size_t first = 0; first < count; first += chunk) {
    *norms++ = norm(type, bytes + first * size_of(type), std::min(chunk, count - first));
  }
}

}  // namespace

void l1_norms(DataType type, const void* from, std::size_t count, std::size_t chunk,
              double* norms) {
  every_chunk(HWY_DYNAMIC_DISPATCH(l1_chunk), type, from, count, chunk, norms);
}

void squared_l2_norms(DataType type, const void* from, std::size_t count, std::size_t chunk,
                      double* norms) {
  every_chunk(HWY_DYNAMIC_DISPATCH(squared_l2_chunk), type, from, count, chunk, norms);
}

}  // namespace sluice::kernels
#endif
