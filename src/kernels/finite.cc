// finite.cc - block by block, for the largest magnitude alone: as an integer, the bits of |x| grow
// with |x|, infinity above all numbers and NaN above infinity. Only a block whose largest is no
// number is counted.
#include "kernels/finite.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/finite.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cassert>
#include <limits>

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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
  HWY_ALIGN T lanes[n];
  hn::Store(hn::Max(first, second), d, lanes);
  T largest = *std::max_element(lanes, lanes + n);
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

HWY_EXPORT(largest_of_16);
HWY_EXPORT(largest_of_32);
HWY_EXPORT(largest_of_64);

template <class T>
std::uint64_t count_from(T (*largest)(const T*, std::size_t), const void* data, std::size_t count,
                         T infinity) {
  constexpr std::size_t block = 4096;  // still in L1 should it have to be counted
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

std::uint64_t count_not_finite(DataType type, const void* from, std::size_t count) {
  switch (type) {
    case DataType::F32:
      return count_from(HWY_DYNAMIC_DISPATCH(largest_of_32), from, count, 0x7f800000);
    case DataType::F64:
      return count_from(HWY_DYNAMIC_DISPATCH(largest_of_64), from, count,
                        std::int64_t{0x7ff0000000000000});
    case DataType::F16:
      return count_from(HWY_DYNAMIC_DISPATCH(largest_of_16), from, count, std::int16_t{0x7c00});
    case DataType::BF16:
      return count_from(HWY_DYNAMIC_DISPATCH(largest_of_16), from, count, std::int16_t{0x7f80});
    case DataType::I32:
    case DataType::I64:
      break;
  }
  assert(false && "integers are always finite");
  return 0;
}

}  // namespace sluice::kernels
#endif
