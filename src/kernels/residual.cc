#include "kernels/residual.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/residual.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <cstring>

#include "kernels/vectors_inl.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// As many f32 as a vector of f64 has elements, since every result is also added up in f64.
using Narrow = hn::Rebind<float, Wide>;

// Writes v to `to`, which may be r, if it is not null. `cleared` is r if r is set to zero, else
// null.
struct Pass {
  Addend addend;
  const float* r;
  float* to = nullptr;
  float* cleared = nullptr;
};

template <bool kDecay>
HWY_INLINE hn::Vec<Narrow> value_at(const Pass& pass, std::size_t i) {
  const Narrow d;
  const Addend& addend = pass.addend;
  auto added = hn::Mul(hn::LoadU(d, addend.gradient + i), hn::Set(d, addend.scale));
  if constexpr (kDecay) {
    const auto weights = hn::LoadU(d, addend.weights + i);
    added = hn::Add(added, hn::Mul(weights, hn::Set(d, addend.decay)));
  }
  return hn::Add(hn::LoadU(d, pass.r + i), added);
}

template <bool kDecay, bool kTo, bool kClear>
HWY_INLINE void add_block(PartialSums& sums, const Pass& pass, std::size_t first) {
  HWY_UNROLL(kSumsUnroll)
  for (std::size_t v = 0; v < kWideVectors; ++v) {
    const std::size_t i = first + v * kWideElements;
    const auto value = value_at<kDecay>(pass, i);
    if constexpr (kTo) hn::StoreU(value, Narrow{}, pass.to + i);
    if constexpr (kClear) hn::StoreU(hn::Zero(Narrow{}), Narrow{}, pass.cleared + i);
    sums.add(v, hn::Abs(hn::PromoteTo(Wide{}, value)));
  }
}

// Fewer elements than a block, padded with zeros to a whole one. Zeros change no sum.
template <bool kDecay, bool kTo, bool kClear>
HWY_INLINE void add_rest(PartialSums& sums, const Pass& pass, std::size_t first,
                         std::size_t count) {
  const std::size_t bytes = count * sizeof(float);
  float gradient[kPartialSums] = {};
  float weights[kPartialSums] = {};
  float r[kPartialSums] = {};
  std::memcpy(gradient, pass.addend.gradient + first, bytes);
  if constexpr (kDecay) std::memcpy(weights, pass.addend.weights + first, bytes);
  std::memcpy(r, pass.r + first, bytes);
  const Addend addend{gradient, pass.addend.scale, weights, pass.addend.decay};
  add_block<kDecay, kTo, false>(sums, {.addend = addend, .r = r, .to = r}, 0);
  if constexpr (kTo) std::memcpy(pass.to + first, r, bytes);
  if constexpr (kClear) std::memset(pass.cleared + first, 0, bytes);
}

template <bool kDecay, bool kTo, bool kClear>
HWY_INLINE double add_all(const Pass& pass, std::size_t count) {
  PartialSums sums;
  std::size_t i = 0;
  for (; i + kPartialSums <= count; i += kPartialSums) {
    add_block<kDecay, kTo, kClear>(sums, pass, i);
  }
  if (i < count) add_rest<kDecay, kTo, kClear>(sums, pass, i, count - i);
  return sums.total();
}

template <bool kTo, bool kClear>
HWY_INLINE double add_with(const Pass& pass, std::size_t count) {
  return pass.addend.weights == nullptr ? add_all<false, kTo, kClear>(pass, count)
                                        : add_all<true, kTo, kClear>(pass, count);
}

double do_drain(float* to, float* r, const Addend& addend, std::size_t count) {
  return add_with<true, true>({.addend = addend, .r = r, .to = to, .cleared = r}, count);
}

double do_sum_to(float* to, const float* r, const Addend& addend, std::size_t count) {
  return add_with<true, false>({.addend = addend, .r = r, .to = to}, count);
}

double do_norm_of_sum(const float* r, const Addend& addend, std::size_t count) {
  return add_with<false, false>({.addend = addend, .r = r}, count);
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {
namespace {

HWY_EXPORT(do_drain);
HWY_EXPORT(do_sum_to);
HWY_EXPORT(do_norm_of_sum);

}  // namespace

double accumulate(float* r, const Addend& addend, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(do_sum_to)(r, r, addend, count);
}

double drain(float* to, float* r, const Addend& addend, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(do_drain)(to, r, addend, count);
}

double sum_to(float* to, const float* r, const Addend& addend, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(do_sum_to)(to, r, addend, count);
}

double norm_of_sum(const float* r, const Addend& addend, std::size_t count) {
  return HWY_DYNAMIC_DISPATCH(do_norm_of_sum)(r, addend, count);
}

}  // namespace sluice::kernels
#endif
