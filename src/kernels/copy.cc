// copy.cc - memcpy, and past the cache for large blocks.
//
// The C library switches over too, but at a size it derives from the last-level cache it is told
// of, which on a virtual machine is the whole host's.
#include "kernels/copy.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/copy.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstdint>
#include <cstring>

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

HWY_EXPORT(stream_copy);

void copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;  // memcpy may not be told of null
  if (bytes < kStreamBytes) {
    std::memcpy(to, from, bytes);
  } else {
    HWY_DYNAMIC_DISPATCH(stream_copy)
    (static_cast<std::uint8_t*>(to), static_cast<const std::uint8_t*>(from), bytes);
  }
}

}  // namespace sluice::kernels
#endif
