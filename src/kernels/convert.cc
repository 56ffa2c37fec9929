// convert.cc - narrow() works block by block and keeps the largest magnitude of a block as integer
// bits: these grow with |x|, infinity is above all numbers, and NaN is above infinity. It counts
// elements, one by one, only in a block whose largest magnitude overflows.
#include "kernels/convert.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/convert.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cstring>

#include "kernels/vectors_inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Converts and scales, and keeps the bits of the largest magnitude.
template <class Vector>
class Narrower {
 public:
  using V = typename Vector::V;
  using Bits = hn::RebindToSigned<typename Vector::D>;
  static constexpr std::size_t kElements = elements_of<Vector>();

  explicit HWY_INLINE Narrower(float scale) : scale_{scale}, scaled_{scale != 1} {}

  HWY_INLINE void convert(std::uint16_t* to, const float* from) {
    const typename Vector::D d;
    V value = hn::LoadU(d, from);
    if (scaled_) value = hn::Mul(value, hn::Set(d, scale_));
    largest_ = hn::Max(largest_, hn::BitCast(Bits{}, hn::Abs(value)));
    Vector::store(value, to);
  }

  HWY_INLINE void convert_part(std::uint16_t* to, const float* from, std::size_t count) {
    float part[kElements] = {};
    std::uint16_t narrowed[kElements];
    std::memcpy(part, from, count * sizeof(float));
    convert(narrowed, part);
    std::memcpy(to, narrowed, count * sizeof(std::uint16_t));
  }

  // The largest magnitude since the last call.
  HWY_INLINE std::int32_t take_largest() {
    const std::int32_t largest = largest_element(Bits{}, largest_);
    largest_ = hn::Zero(Bits{});
    return largest;
  }

 private:
  float scale_;
  bool scaled_;
  hn::Vec<Bits> largest_ = hn::Zero(Bits{});
};

template <class Vector>
HWY_INLINE std::int32_t narrow_block(std::uint16_t* to, const float* from, std::size_t count,
                                     float scale) {
  constexpr std::size_t n = elements_of<Vector>();
  Narrower<Vector> first{scale};
  Narrower<Vector> second{scale};
  std::size_t i = 0;
  for (; i + 2 * n <= count; i += 2 * n) {
    first.convert(to + i, from + i);
    second.convert(to + i + n, from + i + n);
  }
  for (; i + n <= count; i += n) first.convert(to + i, from + i);
  if (i < count) first.convert_part(to + i, from + i, count - i);
  return std::max(first.take_largest(), second.take_largest());
}

std::int32_t narrow_block_f16(std::uint16_t* to, const float* from, std::size_t count,
                              float scale) {
  return narrow_block<F16Vector>(to, from, count, scale);
}

std::int32_t narrow_block_bf16(std::uint16_t* to, const float* from, std::size_t count,
                               float scale) {
  return narrow_block<Bf16Vector>(to, from, count, scale);
}

// Widens and scales. Returns the bits of the largest magnitude if kChecked, else 0.
template <class Vector, bool kChecked>
HWY_INLINE std::int32_t widen_all(float* to, const std::uint16_t* from, std::size_t count,
                                  float scale) {
  const typename Vector::D d;
  const hn::RebindToSigned<typename Vector::D> bits;
  constexpr std::size_t n = elements_of<Vector>();
  const auto factor = hn::Set(d, scale);
  const bool scaled = scale != 1;
  auto largest = hn::Zero(bits);
  const auto convert = [&](float* target, const std::uint16_t* source) HWY_ATTR {
    auto value = Vector::load(source);
    if constexpr (kChecked) largest = hn::Max(largest, hn::BitCast(bits, hn::Abs(value)));
    if (scaled) value = hn::Mul(value, factor);
    hn::StoreU(value, d, target);
  };
  std::size_t i = 0;
  for (; i + n <= count; i += n) convert(to + i, from + i);
  if (i < count) {
    std::uint16_t part[n] = {};
    float widened[n];
    std::memcpy(part, from + i, (count - i) * sizeof(std::uint16_t));
    convert(widened, part);
    std::memcpy(to + i, widened, (count - i) * sizeof(float));
  }
  if constexpr (!kChecked) return 0;
  return largest_element(bits, largest);
}

void widen_all_f16(float* to, const std::uint16_t* from, std::size_t count, float scale) {
  widen_all<F16Vector, false>(to, from, count, scale);
}

void widen_all_bf16(float* to, const std::uint16_t* from, std::size_t count, float scale) {
  widen_all<Bf16Vector, false>(to, from, count, scale);
}

std::int32_t widen_checked_f16(float* to, const std::uint16_t* from, std::size_t count,
                               float scale) {
  return widen_all<F16Vector, true>(to, from, count, scale);
}

std::int32_t widen_checked_bf16(float* to, const std::uint16_t* from, std::size_t count,
                                float scale) {
  return widen_all<Bf16Vector, true>(to, from, count, scale);
}

// memcpy() also bypasses the cache, but only from a size that depends on the last-level cache; a
// virtual machine reports the cache of the whole host.
void stream_copy(std::uint8_t* to, const std::uint8_t* from, std::size_t bytes) {
  const hn::ScalableTag<std::uint8_t> d;
  constexpr std::size_t n = hn::MaxLanes(hn::ScalableTag<std::uint8_t>{});
  const std::size_t head = (n - reinterpret_cast<std::uintptr_t>(to) % n) % n;
  std::memcpy(to, from, head);
  std::size_t i = head;
  for (; i + 4 * n <= bytes; i += 4 * n) {
    const auto v0 = hn::LoadU(d, from + i);
    const auto v1 = hn::LoadU(d, from + i + n);
    const auto v2 = hn::LoadU(d, from + i + 2 * n);
    const auto v3 = hn::LoadU(d, from + i + 3 * n);
    hn::Stream(v0, d, to + i);
    hn::Stream(v1, d, to + i + n);
    hn::Stream(v2, d, to + i + 2 * n);
    hn::Stream(v3, d, to + i + 3 * n);
  }
  hwy::FlushStream();
  std::memcpy(to + i, from + i, bytes - i);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {
namespace {

HWY_EXPORT(stream_copy);
HWY_EXPORT(narrow_block_f16);
HWY_EXPORT(narrow_block_bf16);
HWY_EXPORT(widen_all_f16);
HWY_EXPORT(widen_all_bf16);
HWY_EXPORT(widen_checked_f16);
HWY_EXPORT(widen_checked_bf16);

constexpr std::int32_t kInfinity = 0x7f800000;
// The smallest magnitudes that round to infinity: 65,520, and 2^128 - 2^119.
constexpr std::int32_t kOverflowF16 = 0x477ff000;
constexpr std::int32_t kOverflowBf16 = 0x7f7f8000;

std::int32_t magnitude_bits(float value) { return std::bit_cast<std::int32_t>(value) & 0x7fffffff; }

ConvertCounts count_block(const float* from, std::size_t count, float scale,
                          std::int32_t overflow) {
  ConvertCounts counts;
  for (std::size_t i = 0; i < count; ++i) {
    const std::int32_t after = magnitude_bits(scale == 1 ? from[i] : scale * from[i]);
    if (after > kInfinity) {
      ++counts.nan;
    } else if (after >= overflow) {
      ++(magnitude_bits(from[i]) == kInfinity ? counts.inf : counts.overflow);
    }
  }
  return counts;
}

}  // namespace

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;  // memcpy must not get null
  if (bytes < kStreamBytes) {
    std::memcpy(to, from, bytes);
  } else {
    HWY_DYNAMIC_DISPATCH(stream_copy)
    (static_cast<std::uint8_t*>(to), static_cast<const std::uint8_t*>(from), bytes);
  }
}

ConvertCounts narrow(DataType type, void* to, const float* from, std::size_t count, float scale) {
  assert(type == DataType::F16 || type == DataType::BF16);
  constexpr std::size_t block = 4096;  // its input is still in L1 when count_block() reads it
  const bool f16 = type == DataType::F16;
  const std::int32_t overflow = f16 ? kOverflowF16 : kOverflowBf16;
  const auto convert =
      f16 ? HWY_DYNAMIC_DISPATCH(narrow_block_f16) : HWY_DYNAMIC_DISPATCH(narrow_block_bf16);
  auto* target = static_cast<std::uint16_t*>(to);
  ConvertCounts counts;
  for (std::size_t i = 0; i < count; i += block) {
    const std::size_t size = std::min(block, count - i);
    if (convert(target + i, from + i, size, scale) < overflow) continue;
    counts += count_block(from + i, size, scale, overflow);
  }
  return counts;
}

void widen(DataType type, float* to, const void* from, std::size_t count, float scale) {
  assert(type == DataType::F16 || type == DataType::BF16);
  const auto convert = type == DataType::F16 ? HWY_DYNAMIC_DISPATCH(widen_all_f16)
                                             : HWY_DYNAMIC_DISPATCH(widen_all_bf16);
  convert(to, static_cast<const std::uint16_t*>(from), count, scale);
}

float widen_checked(DataType type, float* to, const void* from, std::size_t count, float scale) {
  assert(type == DataType::F16 || type == DataType::BF16);
  const auto convert = type == DataType::F16 ? HWY_DYNAMIC_DISPATCH(widen_checked_f16)
                                             : HWY_DYNAMIC_DISPATCH(widen_checked_bf16);
  return std::bit_cast<float>(convert(to, static_cast<const std::uint16_t*>(from), count, scale));
}

}  // namespace sluice::kernels
#endif
