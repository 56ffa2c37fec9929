#include "gradient/sparse/sparse_bucket.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/norms.h"
#include "kernels/reduce.h"

namespace sluice::gradient {

SparseBucket::SparseBucket(const BucketSpec& spec, const SparseContext& context, StepContext& step)
    : Bucket{spec, step}, context_{context} {
  for (std::size_t k = 0; k < spec.range.count; ++k) count_ += sent(gradient(k));
}

std::size_t SparseBucket::sent(std::size_t i) const {
  return context_.chunks->whole(i) ? elements(i)
                                   : selected_elements(*context_.chunks, i, context_.step.selected);
}

kernels::Addend SparseBucket::addend(std::size_t i) const {
  const WeightDecay& decay = (*context_.decays)[i];
  return {.gradient = slot(i),
          .scale = static_cast<float>(1 / step().conversion.loss_scale),
          .weights = decay.weights,
          .decay = decay.factor};
}

void SparseBucket::fill() {
  if (in_place()) {
    compact();
  } else {
    pack();
  }
}

void SparseBucket::drain() {
  if (in_place()) {
    expand_in_place();
  } else {
    check_sums();
  }
}

void SparseBucket::compact() {
  auto* to = reinterpret_cast<float*>(in_pool());
  for (std::size_t k = 0; k < spec().range.count; ++k) {
    const std::size_t i = gradient(k);
    if (context_.chunks->whole(i)) {
      std::memmove(to, slot(i), elements(i) * sizeof(float));
      to += elements(i);
    } else {
      to = context_.residual->compact(i, addend(i), context_.step, to);
    }
  }
}

void SparseBucket::expand_in_place() {
  const auto* packed = reinterpret_cast<const float*>(in_pool()) + count_;
  for (std::size_t k = spec().range.count; k-- > 0;) {
    const std::size_t i = gradient(k);
    packed -= sent(i);
    if (context_.chunks->whole(i)) {
      std::memmove(slot(i), packed, elements(i) * sizeof(float));
    } else {
      expand(*context_.chunks, i, context_.step.selected, {},
             reinterpret_cast<const std::byte*>(packed), slot(i));
    }
    // The bytes between slots are zero.
    std::byte* const end = step().pool + spec().layout.offset(i) + elements(i) * sizeof(float);
    std::byte* const next = step().pool + spec().layout.begin(spec().range.first + k + 1);
    std::memset(end, 0, static_cast<std::size_t>(next - end));
  }
}

void SparseBucket::pack() {
  const WireConversion& conversion = step().conversion;
  std::byte* to = data();
  for (std::size_t k = 0; k < spec().range.count; ++k) {
    const std::size_t i = gradient(k);
    OverflowCounts counts;
    if (!context_.chunks->whole(i)) {
      to = context_.residual->pack(i, addend(i), context_.step, {type(), conversion.wire_scale}, to,
                                   counts);
    } else if (conversion.narrows()) {
      const kernels::ConvertCounts converted =
          kernels::narrow(type(), to, slot(i), elements(i), conversion.narrow_factor());
      counts = {.overflowed = converted.overflow, .not_finite = converted.inf + converted.nan};
      to += elements(i) * size_of(type());
    } else {
      const std::array<const void*, 1> source = {slot(i)};
      kernels::reduce_into({.factor = 1 / conversion.loss_scale}, to, source, elements(i));
      counts.not_finite = kernels::count_not_finite(DataType::F32, to, elements(i));
      to += elements(i) * sizeof(float);
    }
    if (counts.values() == 0) continue;
    OverflowCounts& all = step().counts;
    all.overflowed += counts.overflowed;
    all.not_finite += counts.not_finite;
    if (all.first != kNoGradient) continue;
    all.first = i;
    all.in_first = counts.values();
  }
}

void SparseBucket::check_sums() {
  constexpr std::size_t kBlock = 4096;  // elements; widened while in the cache
  std::array<float, kBlock> widened;
  const std::byte* from = data();
  for (std::size_t k = 0; k < spec().range.count; ++k) {
    const std::size_t i = gradient(k);
    for (std::size_t left = sent(i); left > 0;) {
      const std::size_t count = std::min(kBlock, left);
      left -= count;
      if (!step().conversion.narrows()) {
        if (kernels::count_not_finite(DataType::F32, from, count) > 0)
          step().sums.in_pool = std::min(step().sums.in_pool, i);
      } else if (const float largest = kernels::widen_checked(type(), widened.data(), from, count);
                 std::isfinite(largest)) {
        step().largest = std::max(step().largest, largest);
      } else {
        step().sums.on_wire = std::min(step().sums.on_wire, i);
      }
      from += count * size_of(type());
    }
  }
}

void SparseBucket::deliver() {
  if (in_place()) return;
  const WireConversion& conversion = step().conversion;
  const PackedType packed{type(), conversion.narrows() ? conversion.widen_factor() : 1};
  const std::byte* from = data();
  for (std::size_t k = 0; k < spec().range.count; ++k) {
    const std::size_t i = gradient(k);
    if (!context_.chunks->whole(i)) {
      context_.residual->commit(i, addend(i), context_.step);
      expand(*context_.chunks, i, context_.step.selected, packed, from, slot(i));
    } else if (conversion.narrows()) {
      kernels::widen(type(), slot(i), from, elements(i), packed.factor);
    } else {
      std::memcpy(slot(i), from, elements(i) * sizeof(float));
    }
    from += sent(i) * size_of(type());
  }
}

}  // namespace sluice::gradient
