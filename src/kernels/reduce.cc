// reduce.cc - the reduction loop, for every type and operation.
//
// Four vectors are in flight, so that the loads of one overlap the additions of another. With two
// sources and one or two targets, as on two ranks, sums keep the pointers in registers, which is
// 10% faster in cache. All other cases take the general loop, which reads the pointers again each
// time. Special loops for three or eight sources were no faster, and neither were prefetches.
#include "kernels/reduce.h"

#include "kernels/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/reduce.cc"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "kernels/convert.h"
#include "kernels/vectors_inl.h"

#ifndef SLUICE_KERNELS_REDUCE_CALL_
#define SLUICE_KERNELS_REDUCE_CALL_
namespace sluice::kernels {

struct ReduceCall {
  const Reduction& reduction;
  std::span<void* const> targets;
  std::span<const void* const> sources;
  std::size_t count = 0;
  bool streams = false;  // the targets are large and are not sources: write them past the cache
};

}  // namespace sluice::kernels
#endif

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

struct Multiply {
  template <class D, class V>
  static HWY_INLINE V combine(D d, V a, V b) {
    using T = hn::TFromD<D>;
    if constexpr (sizeof(T) == 1 && hn::MaxLanes(D{}) == 1) {
      return hn::Set(d, static_cast<T>(hn::GetLane(a) * hn::GetLane(b)));
    } else if constexpr (sizeof(T) == 1) {
      return low_bytes_of_products(d, a, b);
    } else if constexpr (std::is_integral_v<T>) {
      const hn::RebindToUnsigned<D> du;  // wraps around
      return hn::BitCast(d, hn::Mul(hn::BitCast(du, a), hn::BitCast(du, b)));
    } else {
      return hn::Mul(a, b);
    }
  }

 private:
  // Highway multiplies no bytes. The lower byte of a 16-bit product depends on the lower bytes of
  // its factors alone.
  template <class D, class V>
  static HWY_INLINE V low_bytes_of_products(D d, V a, V b) {
    const hn::Repartition<std::uint16_t, D> pairs;
    const auto a16 = hn::BitCast(pairs, a);
    const auto b16 = hn::BitCast(pairs, b);
    const auto even = hn::And(hn::Mul(a16, b16), hn::Set(pairs, 0xff));
    const auto odd = hn::Mul(hn::ShiftRight<8>(a16), hn::ShiftRight<8>(b16));
    return hn::BitCast(d, hn::Or(even, hn::ShiftLeft<8>(odd)));
  }
};

struct BitAnd {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::And(a, b);
  }
};

struct BitOr {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Or(a, b);
  }
};

struct BitXor {
  template <class D, class V>
  static HWY_INLINE V combine(D, V a, V b) {
    return hn::Xor(a, b);
  }
};

// If neither of two floats is less, they are equal (and differ at most in the sign of zero), or one
// is NaN. Both cases are spelt out, because Highway's Min and Max treat them differently on
// different machines.
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

// Multiplies by the factor or divides by the divisor, unless it is 1.
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
      HWY_ALIGN T elements[hn::MaxLanes(D{})];
      hn::Store(value, d, elements);
      for (T& element : elements) element = static_cast<T>(element / divisor_);
      return hn::Load(d, elements);
    } else {
      return hn::Mul(value, hn::Set(d, factor_));
    }
  }

 private:
  bool active_ = false;
  T factor_ = 1;
  std::int64_t divisor_ = 1;
};

// The sources or targets of a call: kFixed of them, kept in registers, or any number (kFixed 0).
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

template <bool kStream, class Vector>
HWY_INLINE void put(typename Vector::V value, typename Vector::Stored* to) {
  if constexpr (kStream) {
    Vector::stream(value, to);
  } else {
    Vector::store(value, to);
  }
}

// REQUIRES: end - begin is a multiple of the elements of a vector; with kStream, targets are
// aligned at begin.
template <class Vector, class Op, int kSources, int kTargets, bool kStream>
HWY_NOINLINE void reduce_vectors(const ReduceCall& call, std::size_t begin, std::size_t end) {
  using Stored = typename Vector::Stored;
  using V = typename Vector::V;
  const typename Vector::D d;
  constexpr std::size_t n = elements_of<Vector>();
  const Finish<typename Vector::D> finish{call.reduction};
  const Arrays<kSources, const Stored, const void> sources{call.sources};
  const Arrays<kTargets, Stored, void> targets{call.targets};

  std::size_t i = begin;
  for (; i + 4 * n <= end; i += 4 * n) {
    const Stored* first = sources[0] + i;
    V v0 = Vector::load(first);
    V v1 = Vector::load(first + n);
    V v2 = Vector::load(first + 2 * n);
    V v3 = Vector::load(first + 3 * n);
    for (std::size_t k = 1; k < sources.size(); ++k) {
      const Stored* next = sources[k] + i;
      v0 = Op::combine(d, v0, Vector::load(next));
      v1 = Op::combine(d, v1, Vector::load(next + n));
      v2 = Op::combine(d, v2, Vector::load(next + 2 * n));
      v3 = Op::combine(d, v3, Vector::load(next + 3 * n));
    }
    if (finish.active()) {
      v0 = finish.apply(v0);
      v1 = finish.apply(v1);
      v2 = finish.apply(v2);
      v3 = finish.apply(v3);
    }
    for (std::size_t k = 0; k < targets.size(); ++k) {
      Stored* to = targets[k] + i;
      put<kStream, Vector>(v0, to);
      put<kStream, Vector>(v1, to + n);
      put<kStream, Vector>(v2, to + 2 * n);
      put<kStream, Vector>(v3, to + 3 * n);
    }
  }
  for (; i < end; i += n) {
    V value = Vector::load(sources[0] + i);
    for (std::size_t k = 1; k < sources.size(); ++k) {
      value = Op::combine(d, value, Vector::load(sources[k] + i));
    }
    if (finish.active()) value = finish.apply(value);
    for (std::size_t k = 0; k < targets.size(); ++k) put<kStream, Vector>(value, targets[k] + i);
  }
}

// Reduces fewer elements than a vector has, padded to a whole vector.
template <class Vector, class Op>
HWY_NOINLINE void reduce_part(const ReduceCall& call, std::size_t begin, std::size_t count) {
  using Stored = typename Vector::Stored;
  using V = typename Vector::V;
  const typename Vector::D d;
  const Finish<typename Vector::D> finish{call.reduction};
  Stored part[elements_of<Vector>()] = {};
  const std::size_t bytes = count * sizeof(Stored);
  std::memcpy(part, static_cast<const Stored*>(call.sources[0]) + begin, bytes);
  V value = Vector::load(part);
  for (const void* source : call.sources.subspan(1)) {
    std::memcpy(part, static_cast<const Stored*>(source) + begin, bytes);
    value = Op::combine(d, value, Vector::load(part));
  }
  if (finish.active()) value = finish.apply(value);
  Vector::store(value, part);
  for (void* target : call.targets) {
    std::memcpy(static_cast<Stored*>(target) + begin, part, bytes);
  }
}

// Counts the elements up to the first one that is aligned to a vector in all targets. Returns false
// if the targets have different alignments.
template <class Vector>
HWY_INLINE bool stream_head(const ReduceCall& call, std::size_t& head) {
  constexpr std::size_t vector_bytes = elements_of<Vector>() * sizeof(typename Vector::Stored);
  const std::size_t offset = reinterpret_cast<std::uintptr_t>(call.targets[0]) % vector_bytes;
  for (const void* target : call.targets) {
    if (reinterpret_cast<std::uintptr_t>(target) % vector_bytes != offset) return false;
  }
  head = (vector_bytes - offset) % vector_bytes / sizeof(typename Vector::Stored);
  return true;
}

// Reduces all elements but the last few, which do not fill a vector; returns where those begin.
template <class Vector, class Op>
HWY_INLINE std::size_t reduce_most(const ReduceCall& call) {
  constexpr std::size_t n = elements_of<Vector>();
  const std::size_t end = call.count / n * n;
  if constexpr (std::is_same_v<Op, Add>) {
    std::size_t head = 0;
    if constexpr (Vector::kCanStream) {
      if (call.streams && stream_head<Vector>(call, head)) {
        const std::size_t stream_end = head + (call.count - head) / n * n;
        if (head != 0) reduce_part<Vector, Op>(call, 0, head);
        reduce_vectors<Vector, Op, 0, 0, true>(call, head, stream_end);
        hwy::FlushStream();
        return stream_end;
      }
    }
    if (call.sources.size() == 2 && call.targets.size() == 2) {
      reduce_vectors<Vector, Op, 2, 2, false>(call, 0, end);
      return end;
    }
    if (call.sources.size() == 2 && call.targets.size() == 1) {
      reduce_vectors<Vector, Op, 2, 1, false>(call, 0, end);
      return end;
    }
  }
  reduce_vectors<Vector, Op, 0, 0, false>(call, 0, end);
  return end;
}

template <class Vector, class Op>
HWY_INLINE void reduce_all(const ReduceCall& call) {
  const std::size_t end = reduce_most<Vector, Op>(call);
  if (end != call.count) reduce_part<Vector, Op>(call, end, call.count - end);
}

template <class Vector>
HWY_INLINE void reduce_numbers(const ReduceCall& call) {
  switch (call.reduction.op) {
    case ReduceOp::Sum:
    case ReduceOp::Mean:
      return reduce_all<Vector, Add>(call);
    case ReduceOp::Min:
      return reduce_all<Vector, Min>(call);
    case ReduceOp::Max:
      return reduce_all<Vector, Max>(call);
    case ReduceOp::Product:
      return reduce_all<Vector, Multiply>(call);
    default:
      return;  // is for bits
  }
}

template <class Vector>
HWY_INLINE void reduce_bits_as(const ReduceCall& call) {
  switch (call.reduction.op) {
    case ReduceOp::And:
      return reduce_all<Vector, BitAnd>(call);
    case ReduceOp::Or:
      return reduce_all<Vector, BitOr>(call);
    default:
      return reduce_all<Vector, BitXor>(call);
  }
}

void reduce_f32(const ReduceCall& call) { reduce_numbers<PlainVector<float>>(call); }
void reduce_f64(const ReduceCall& call) { reduce_numbers<PlainVector<double>>(call); }
void reduce_f16(const ReduceCall& call) { reduce_numbers<F16Vector>(call); }
void reduce_bf16(const ReduceCall& call) { reduce_numbers<Bf16Vector>(call); }
void reduce_i32(const ReduceCall& call) { reduce_numbers<PlainVector<std::int32_t>>(call); }
void reduce_i64(const ReduceCall& call) { reduce_numbers<PlainVector<std::int64_t>>(call); }
void reduce_u8(const ReduceCall& call) { reduce_numbers<PlainVector<std::uint8_t>>(call); }
void reduce_i8(const ReduceCall& call) { reduce_numbers<PlainVector<std::int8_t>>(call); }
void reduce_bits(const ReduceCall& call) { reduce_bits_as<PlainVector<std::uint8_t>>(call); }
void reduce_bools(const ReduceCall& call) { reduce_bits_as<BoolVector>(call); }

}  // namespace sluice::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace sluice::kernels {
namespace {

HWY_EXPORT(reduce_f32);
HWY_EXPORT(reduce_f64);
HWY_EXPORT(reduce_f16);
HWY_EXPORT(reduce_bf16);
HWY_EXPORT(reduce_i32);
HWY_EXPORT(reduce_i64);
HWY_EXPORT(reduce_u8);
HWY_EXPORT(reduce_i8);
HWY_EXPORT(reduce_bits);
HWY_EXPORT(reduce_bools);

bool combines_bits(ReduceOp op) {
  return op == ReduceOp::And || op == ReduceOp::Or || op == ReduceOp::Xor;
}

}  // namespace

void reduce_into(const Reduction& reduction, void* target, std::span<const void* const> sources,
                 std::size_t count) {
  reduce_to_all(reduction, {&target, 1}, sources, count);
}

void reduce_to_all(const Reduction& reduction, std::span<void* const> targets,
                   std::span<const void* const> sources, std::size_t count) {
  const auto is_source = [&](const void* target) {
    return std::find(sources.begin(), sources.end(), target) != sources.end();
  };
  const bool streams = count * size_of(reduction.type) >= kStreamBytes &&
                       std::none_of(targets.begin(), targets.end(), is_source);
  ReduceCall call{reduction, targets, sources, count, streams};
  if (combines_bits(reduction.op) && reduction.type != DataType::Bool) {
    call.count *= size_of(reduction.type);  // bytes: where an element ends does not matter
    return HWY_DYNAMIC_DISPATCH(reduce_bits)(call);
  }
  switch (reduction.type) {
    case DataType::F32:
      return HWY_DYNAMIC_DISPATCH(reduce_f32)(call);
    case DataType::F64:
      return HWY_DYNAMIC_DISPATCH(reduce_f64)(call);
    case DataType::F16:
      return HWY_DYNAMIC_DISPATCH(reduce_f16)(call);
    case DataType::BF16:
      return HWY_DYNAMIC_DISPATCH(reduce_bf16)(call);
    case DataType::I32:
      return HWY_DYNAMIC_DISPATCH(reduce_i32)(call);
    case DataType::I64:
      return HWY_DYNAMIC_DISPATCH(reduce_i64)(call);
    case DataType::U8:
      return HWY_DYNAMIC_DISPATCH(reduce_u8)(call);
    case DataType::I8:
      return HWY_DYNAMIC_DISPATCH(reduce_i8)(call);
    case DataType::Bool:
      return HWY_DYNAMIC_DISPATCH(reduce_bools)(call);
  }
}

}  // namespace sluice::kernels
#endif
