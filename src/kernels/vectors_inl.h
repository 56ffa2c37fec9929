// vectors_inl.h - vectors of each element type: how they are loaded, stored and added up.
//
// Compiled once for each instruction set: included by Highway's foreach_target, hence the guard. A
// Vector type has: Stored (an element in memory), D (Highway's tag of the type of the
// arithmetic), V (a vector of that type), load, store, and whether a store may bypass the cache.

#if defined(SLUICE_KERNELS_VECTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_KERNELS_VECTORS_INL_H_
#undef SLUICE_KERNELS_VECTORS_INL_H_
#else
#define SLUICE_KERNELS_VECTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// f32 to 16 bits and back, for vectors of any length. Rounds to nearest even. A NaN stays a NaN and
// becomes quiet, with its sign and the upper bits of its payload, as on x86 and Arm.

template <class D>
HWY_INLINE hn::Vec<D> widen_bf16(D df, hn::Vec<hn::Rebind<std::uint16_t, D>> stored) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(df, hn::ShiftLeft<16>(hn::PromoteTo(du, stored)));
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> narrow_bf16(D df, hn::Vec<D> value) {
  const hn::RebindToSigned<D> di;
  const hn::RebindToUnsigned<D> du;
  const hn::Rebind<std::uint16_t, D> d16;
  const auto bits = hn::BitCast(du, value);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(hn::Add(bits, hn::Set(du, 0x7fff)), odd);
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(value));
  const auto upper = hn::ShiftRight<16>(hn::IfThenElse(is_nan, quiet, rounded));
  (void)df;
  return hn::DemoteTo(d16, hn::BitCast(di, upper));
}

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2 && !defined(HWY_DISABLE_F16C)

template <class D>
HWY_INLINE hn::Vec<D> widen_f16(D df, hn::Vec<hn::Rebind<std::uint16_t, D>> stored) {
  return hn::PromoteTo(df, hn::BitCast(hn::Rebind<hwy::float16_t, D>{}, stored));
}

template <class D>
HWY_INLINE hn::Vec<hn::Rebind<std::uint16_t, D>> narrow_f16(D, hn::Vec<D> value) {
  const hn::Rebind<hwy::float16_t, D> d16;
  return hn::BitCast(hn::Rebind<std::uint16_t, D>{}, hn::DemoteTo(d16, value));
}

#else  // Highway's own f16 code for these targets truncates, and makes infinity of NaN.

// Not inlined: under the sanitizers, compiling a copy at every use would take minutes.

template <class D>
HWY_NOINLINE hn::Vec<D> widen_f16(D df, hn::Vec<hn::Rebind<std::uint16_t, D>> stored) {
  const hn::RebindToUnsigned<D> du;
  const auto wide = hn::PromoteTo(du, stored);
  const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(du, 0x8000)));
  const auto magnitude = hn::And(wide, hn::Set(du, 0x7fff));
  const auto exponent = hn::And(magnitude, hn::Set(du, 0x7c00));
  const auto rebias = hn::Set(du, 112u << 23);
  const auto normal = hn::Add(hn::ShiftLeft<13>(magnitude), rebias);
  // Infinity and NaN get the largest exponent; NaN becomes quiet.
  const auto special = hn::Add(normal, rebias);
  const auto quiet = hn::Or(special, hn::Set(du, 0x400000));
  const auto is_infinite = hn::Eq(magnitude, hn::Set(du, 0x7c00));
  // A denormal gets the exponent of the smallest normal number, which is then subtracted again.
  const auto smallest = hn::Set(du, 113u << 23);
  const auto shifted = hn::BitCast(df, hn::Add(normal, hn::Set(du, 1u << 23)));
  const auto denormal = hn::BitCast(du, hn::Sub(shifted, hn::BitCast(df, smallest)));
  const auto finite = hn::IfThenElse(hn::Eq(exponent, hn::Zero(du)), denormal, normal);
  const auto infinite = hn::IfThenElse(is_infinite, special, quiet);
  const auto is_special = hn::Eq(exponent, hn::Set(du, 0x7c00));
  return hn::BitCast(df, hn::Or(sign, hn::IfThenElse(is_special, infinite, finite)));
}

template <class D>
HWY_NOINLINE hn::Vec<hn::Rebind<std::uint16_t, D>> narrow_f16(D df, hn::Vec<D> value) {
  const hn::RebindToUnsigned<D> du;
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(du, value);
  const auto magnitude = hn::And(bits, hn::Set(du, 0x7fffffff));
  const auto sign = hn::ShiftRight<16>(hn::Xor(bits, magnitude));
  const auto odd = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 1));
  const auto rebias = hn::Set(du, 0xc8000fffu);  // (15 - 127) << 23, and just below half
  const auto normal = hn::ShiftRight<13>(hn::Add(hn::Add(magnitude, rebias), odd));
  // Adding 0.5 leaves the bits of a denormal, rounded, at the lower end.
  const auto half = hn::Set(df, 0.5f);
  const auto denormal =
      hn::Sub(hn::BitCast(du, hn::Add(hn::BitCast(df, magnitude), half)), hn::BitCast(du, half));
  const auto payload = hn::And(hn::ShiftRight<13>(magnitude), hn::Set(du, 0x1ff));
  const auto nan = hn::Or(payload, hn::Set(du, 0x7e00));
  const auto special =
      hn::IfThenElse(hn::RebindMask(du, hn::IsNaN(value)), nan, hn::Set(du, 0x7c00));
  const auto compared = hn::BitCast(di, magnitude);
  const auto is_denormal = hn::RebindMask(du, hn::Lt(compared, hn::Set(di, 113 << 23)));
  const auto is_special = hn::RebindMask(du, hn::Gt(compared, hn::Set(di, (143 << 23) - 1)));
  const auto finite = hn::IfThenElse(is_denormal, denormal, normal);
  const auto result = hn::Or(sign, hn::IfThenElse(is_special, special, finite));
  return hn::DemoteTo(hn::Rebind<std::uint16_t, D>{}, hn::BitCast(di, result));
}

#endif

// Elements that need no conversion.
template <class T>
struct PlainVector {
  using Stored = T;
  using D = hn::ScalableTag<T>;
  using V = hn::Vec<D>;
  static constexpr bool kCanStream = true;
  static HWY_INLINE V load(const Stored* from) { return hn::LoadU(D{}, from); }
  static HWY_INLINE void store(V value, Stored* to) { hn::StoreU(value, D{}, to); }
  static HWY_INLINE void stream(V value, Stored* to) { hn::Stream(value, D{}, to); }
};

// Truth values: 1 for every byte but 0.
struct BoolVector : PlainVector<std::uint8_t> {
  static HWY_INLINE V load(const Stored* from) {
    return hn::Min(hn::LoadU(D{}, from), hn::Set(D{}, 1));
  }
};

// 16-bit elements, computed with as f32. They fill half a vector: too short for Highway's Stream.
struct F16Vector {
  using Stored = std::uint16_t;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using D16 = hn::Rebind<std::uint16_t, D>;
  static constexpr bool kCanStream = false;
  static HWY_INLINE V load(const Stored* from) { return widen_f16(D{}, hn::LoadU(D16{}, from)); }
  static HWY_INLINE void store(V value, Stored* to) {
    hn::StoreU(narrow_f16(D{}, value), D16{}, to);
  }
};

struct Bf16Vector {
  using Stored = std::uint16_t;
  using D = hn::ScalableTag<float>;
  using V = hn::Vec<D>;
  using D16 = hn::Rebind<std::uint16_t, D>;
  static constexpr bool kCanStream = false;
  static HWY_INLINE V load(const Stored* from) { return widen_bf16(D{}, hn::LoadU(D16{}, from)); }
  static HWY_INLINE void store(V value, Stored* to) {
    hn::StoreU(narrow_bf16(D{}, value), D16{}, to);
  }
};

template <class Vector>
constexpr std::size_t elements_of() {
  return hn::MaxLanes(typename Vector::D{});
}

template <class D>
HWY_INLINE hn::TFromD<D> largest_element(D d, hn::Vec<D> vector) {
  constexpr std::size_t n = hn::MaxLanes(D{});
  HWY_ALIGN hn::TFromD<D> elements[n];
  hn::Store(vector, d, elements);
  return *std::max_element(elements, elements + n);
}

// Sums in f64 whose bits do not depend on the length of a vector: norms.h has the order.

using Wide = hn::ScalableTag<double>;
inline constexpr std::size_t kPartialSums = 32;
inline constexpr std::size_t kWideElements = hn::MaxLanes(Wide{});
inline constexpr std::size_t kWideVectors = kPartialSums / kWideElements;
// Unrolled loops keep the sums in registers, if there are enough of them.
inline constexpr int kSumsUnroll = kWideVectors <= 8 ? kWideVectors : 1;

// Element i of a block of 32 belongs to vector i / kWideElements.
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
      hn::Store(sums_[v], Wide{}, partial + v * kWideElements);
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

#endif  // SLUICE_KERNELS_VECTORS_INL_H_
