// reduce_inl.h - the reduction loop, for any Lanes and operation.
//
// For one instruction set at a time: included by Highway's foreach_target, hence the guard.
//
// Four vectors are in flight, so that the loads of the next overlap the additions of the last. Sums
// of two sources into one or two targets, what two ranks do, have their pointers in registers (a
// tenth faster in cache); all else takes the general loop, which reads the pointers again each
// time. Loops for three or eight sources were no faster than that, nor were prefetches.

#if defined(SLUICE_KERNELS_REDUCE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SLUICE_KERNELS_REDUCE_INL_H_
#undef SLUICE_KERNELS_REDUCE_INL_H_
#else
#define SLUICE_KERNELS_REDUCE_INL_H_
#endif

#include <hwy/cache_control.h>

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/lanes_inl.h"
#include "kernels/reduce_call.h"

HWY_BEFORE_NAMESPACE();
namespace sluice::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct Add {
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    if constexpr (std::is_integral_v<hn::TFromD<D>>) {
      const hn::RebindToUnsigned<D> du;  // wraps around
      return hn::BitCast(d, hn::Add(hn::BitCast(du, a), hn::BitCast(du, b)));
    } else {
      return hn::Add(a, b);
    }
  }
};

// Floats that are neither less nor greater are equal, and then differ at most in the sign of zero,
// or one of them is NaN. Spelt out because Highway's Min and Max differ between machines in both
// cases.
template <class D, class V>
HWY_INLINE V nan_if_any(D d, V a, V b, V other) {
  using T = hn::TFromD<D>;
  const V nan = hn::Set(d, std::numeric_limits<T>::quiet_NaN());
  return hn::IfThenElse(hn::Or(hn::IsNaN(a), hn::IsNaN(b)), nan, other);
}

struct Min {
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    if constexpr (std::is_integral_v<hn::TFromD<D>>) {
      return hn::Min(a, b);
    } else {
      const V not_greater = hn::IfThenElse(hn::Lt(b, a), b, hn::Or(a, b));
      return nan_if_any(d, a, b, hn::IfThenElse(hn::Lt(a, b), a, not_greater));
    }
  }
};

struct Max {
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    if constexpr (std::is_integral_v<hn::TFromD<D>>) {
      return hn::Max(a, b);
    } else {
      const V not_less = hn::IfThenElse(hn::Gt(b, a), b, hn::And(a, b));
      return nan_if_any(d, a, b, hn::IfThenElse(hn::Gt(a, b), a, not_less));
    }
  }
};

// The factor or divisor, where there is one.
template <class D>
class Finish {
 public:
  using T = hn::TFromD<D>;
  using V = hn::Vec<D>;

  explicit Finish(const Reduction& reduction) {
    if constexpr (std::is_integral_v<T>) {
      divisor_ = reduction.divisor;
      active_ = divisor_ != 1;
    } else {
      factor_ = static_cast<T>(reduction.factor);
      active_ = factor_ != T{1};
    }
  }

  bool active() const { return active_; }

  HWY_INLINE V apply(V value) const {
    const D d;
    if constexpr (std::is_integral_v<T>) {
      HWY_ALIGN T lanes[hn::MaxLanes(D{})];
      hn::Store(value, d, lanes);
      for (T& lane : lanes) lane = static_cast<T>(lane / divisor_);
      return hn::Load(d, lanes);
    } else {
      return hn::Mul(value, hn::Set(d, factor_));
    }
  }

 private:
  bool active_ = false;
  T factor_ = 1;
  std::int64_t divisor_ = 1;
};

// The sources or targets of a call: kFixed of them, held in registers, or any number.
template <int kFixed, class Stored, class Void>
class Arrays {
 public:
  explicit HWY_INLINE Arrays(std::span<Void* const> arrays) {
    for (int k = 0; k < kFixed; ++k) at_[k] = static_cast<Stored*>(arrays[k]);
  }
  HWY_INLINE std::size_t size() const { return kFixed; }
  HWY_INLINE Stored* operator[](std::size_t k) const { return at_[k]; }

 private:
  Stored* at_[kFixed];
};

template <class Stored, class Void>
class Arrays<0, Stored, Void> {
 public:
  explicit HWY_INLINE Arrays(std::span<Void* const> arrays) : arrays_{arrays} {}
  HWY_INLINE std::size_t size() const { return arrays_.size(); }
  HWY_INLINE Stored* operator[](std::size_t k) const { return static_cast<Stored*>(arrays_[k]); }

 private:
  std::span<Void* const> arrays_;
};

template <bool kStream, class Lanes>
HWY_INLINE void put(typename Lanes::V value, typename Lanes::Stored* to) {
  if constexpr (kStream) {
    Lanes::stream(value, to);
  } else {
    Lanes::store(value, to);
  }
}

// REQUIRES: end - begin is a multiple of the lanes; with kStream targets are aligned at begin.
template <class Lanes, class Op, int kSources, int kTargets, bool kStream>
HWY_NOINLINE void reduce_vectors(const ReduceCall& call, std::size_t begin, std::size_t end) {
  using Stored = typename Lanes::Stored;
  using V = typename Lanes::V;
  const typename Lanes::D d;
  constexpr std::size_t n = lane_count<Lanes>();
  const Finish<typename Lanes::D> finish{call.reduction};
  const Arrays<kSources, const Stored, const void> sources{call.sources};
  const Arrays<kTargets, Stored, void> targets{call.targets};

  std::size_t i = begin;
  for (; i + 4 * n <= end; i += 4 * n) {
    const Stored* first = sources[0] + i;
    V v0 = Lanes::load(first);
    V v1 = Lanes::load(first + n);
    V v2 = Lanes::load(first + 2 * n);
    V v3 = Lanes::load(first + 3 * n);
    for (std::size_t k = 1; k < sources.size(); ++k) {
      const Stored* next = sources[k] + i;
      v0 = Op::combine(d, v0, Lanes::load(next));
      v1 = Op::combine(d, v1, Lanes::load(next + n));
      v2 = Op::combine(d, v2, Lanes::load(next + 2 * n));
      v3 = Op::combine(d, v3, Lanes::load(next + 3 * n));
    }
    if (finish.active()) {
      v0 = finish.apply(v0);
      v1 = finish.apply(v1);
      v2 = finish.apply(v2);
      v3 = finish.apply(v3);
    }
    for (std::size_t k = 0; k < targets.size(); ++k) {
      Stored* to = targets[k] + i;
      put<kStream, Lanes>(v0, to);
      put<kStream, Lanes>(v1, to + n);
      put<kStream, Lanes>(v2, to + 2 * n);
      put<kStream, Lanes>(v3, to + 3 * n);
    }
  }
  for (; i < end; i += n) {
    V value = Lanes::load(sources[0] + i);
    for (std::size_t k = 1; k < sources.size(); ++k) {
      value = Op::combine(d, value, Lanes::load(sources[k] + i));
    }
    if (finish.active()) value = finish.apply(value);
    for (std::size_t k = 0; k < targets.size(); ++k) put<kStream, Lanes>(value, targets[k] + i);
  }
}

// Fewer elements than a vector has, by way of a whole one.
template <class Lanes, class Op>
HWY_NOINLINE void reduce_part(const ReduceCall& call, std::size_t begin, std::size_t count) {
  using Stored = typename Lanes::Stored;
  using V = typename Lanes::V;
  const typename Lanes::D d;
  const Finish<typename Lanes::D> finish{call.reduction};
  Stored part[lane_count<Lanes>()] = {};
  const std::size_t bytes = count * sizeof(Stored);
  std::memcpy(part, static_cast<const Stored*>(call.sources[0]) + begin, bytes);
  V value = Lanes::load(part);
  for (const void* source : call.sources.subspan(1)) {
    std::memcpy(part, static_cast<const Stored*>(source) + begin, bytes);
    value = Op::combine(d, value, Lanes::load(part));
  }
  if (finish.active()) value = finish.apply(value);
  Lanes::store(value, part);
  for (void* target : call.targets) {
    std::memcpy(static_cast<Stored*>(target) + begin, part, bytes);
  }
}

// Elements before `pointer` is aligned to a vector; all targets must agree on it.
template <class Lanes>
HWY_INLINE bool stream_head(const ReduceCall& call, std::size_t& head) {
  constexpr std::size_t vector = lane_count<Lanes>() * sizeof(typename Lanes::Stored);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(call.targets[0]) % vector;
  for (const void* target : call.targets) {
    if (reinterpret_cast<std::uintptr_t>(target) % vector != offset) return false;
  }
  head = (vector - offset) % vector / sizeof(typename Lanes::Stored);
  return true;
}

// All elements but the last few, which do not fill a vector; returns where those begin.
template <class Lanes, class Op>
HWY_INLINE std::size_t reduce_most(const ReduceCall& call) {
  constexpr std::size_t n = lane_count<Lanes>();
  const std::size_t end = call.count / n * n;
  if constexpr (std::is_same_v<Op, Add>) {
    std::size_t head = 0;
    if constexpr (Lanes::kCanStream) {
      if (call.streams && stream_head<Lanes>(call, head)) {
        const std::size_t stream_end = head + (call.count - head) / n * n;
        if (head != 0) reduce_part<Lanes, Op>(call, 0, head);
        reduce_vectors<Lanes, Op, 0, 0, true>(call, head, stream_end);
        hwy::FlushStream();
        return stream_end;
      }
    }
    if (call.sources.size() == 2 && call.targets.size() == 2) {
      reduce_vectors<Lanes, Op, 2, 2, false>(call, 0, end);
      return end;
    }
    if (call.sources.size() == 2 && call.targets.size() == 1) {
      reduce_vectors<Lanes, Op, 2, 1, false>(call, 0, end);
      return end;
    }
  }
  reduce_vectors<Lanes, Op, 0, 0, false>(call, 0, end);
  return end;
}

template <class Lanes, class Op>
HWY_INLINE void reduce_all(const ReduceCall& call) {
  const std::size_t end = reduce_most<Lanes, Op>(call);
  if (end != call.count) reduce_part<Lanes, Op>(call, end, call.count - end);
}

template <class Lanes>
HWY_INLINE void reduce_lanes(const ReduceCall& call) {
  switch (call.reduction.op) {
    case ReduceOp::Sum:
    case ReduceOp::Mean:
      return reduce_all<Lanes, Add>(call);
    case ReduceOp::Min:
      return reduce_all<Lanes, Min>(call);
    case ReduceOp::Max:
      return reduce_all<Lanes, Max>(call);
  }
}

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // SLUICE_KERNELS_REDUCE_INL_H_
