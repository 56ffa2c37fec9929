// partial_sums_inl.h - sums in f64 whose bits do not depend on the vector width: see norms.h.
//
// For one instruction set at a time: included by Highway's foreach_target, hence the guard.

#if defined(SLUICE_KERNELS_PARTIAL_SUMS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_KERNELS_PARTIAL_SUMS_INL_H_
#undef SLUICE_KERNELS_PARTIAL_SUMS_INL_H_
#else
#define SLUICE_KERNELS_PARTIAL_SUMS_INL_H_
#endif

#include <hwy/highway.h>

#include <cstddef>

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::ScalableTag<double>;
inline constexpr std::size_t kPartialSums = 32;
inline constexpr std::size_t kWideLanes = hn::MaxLanes(Wide{});
inline constexpr std::size_t kWideVectors = kPartialSums / kWideLanes;
// Unrolled, the sums stay in registers, if there are enough of them.
inline constexpr int kSumsUnroll = kWideVectors <= 8 ? kWideVectors : 1;

// Element i of a block of 32 belongs to vector i / kWideLanes.
class PartialSums {
 public:
  HWY_INLINE PartialSums() {
    for (auto& sum : sums_) sum = hn::Zero(Wide{});
  }
  HWY_INLINE void add(std::size_t vector, hn::Vec<Wide> value) {
    sums_[vector] = hn::Add(sums_[vector], value);
  }
  HWY_INLINE double total() const {
    HWY_ALIGN double partial[kPartialSums];
    for (std::size_t v = 0; v < kWideVectors; ++v) {
      hn::Store(sums_[v], Wide{}, partial + v * kWideLanes);
    }
    for (std::size_t width = kPartialSums / 2; width > 0; width /= 2) {
      for (std::size_t j = 0; j < width; ++j) partial[j] += partial[j + width];
    }
    return partial[0];
  }

 private:
  hn::Vec<Wide> sums_[kWideVectors];
};

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_KERNELS_PARTIAL_SUMS_INL_H_
