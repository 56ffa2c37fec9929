#include "gradient/sparse/sparse_bucket.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/norms.h"
#include "kernels/reduce.h"

namespace sluice::gradient {

SparseBucket::SparseBucket(const Place& place, const SparseContext& holding, StepContext& step)
    : Bucket{place.number, step}, place_{place}, holding_{holding} {
  for (std::size_t k = 0; k < place_.range.count; ++k) count_ += sent(gradient(k));
}

std::size_t SparseBucket::sent(std::size_t i) const {
  return holding_.chunks->whole(i) ? elements(i)
                                   : selected_elements(*holding_.chunks, i, holding_.step.selected);
}

kernels::Addend SparseBucket::addend(std::size_t i) const {
  const WeightDecay& decay = (*holding_.decays)[i];
  return {.gradient = slot(i),
          .scale = static_cast<float>(1 / step().passage.loss_scale),
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
  for (std::size_t k = 0; k < place_.range.count; ++k) {
    const std::size_t i = gradient(k);
    if (holding_.chunks->whole(i)) {
      std::memmove(to, slot(i), elements(i) * sizeof(float));
      to += elements(i);
    } else {
      to = holding_.residual->compact(i, addend(i), holding_.step, to);
    }
  }
}

void SparseBucket::expand_in_place() {
  const auto* packed = reinterpret_cast<const float*>(in_pool()) + count_;
  for (std::size_t k = place_.range.count; k-- > 0;) {
    const std::size_t i = gradient(k);
    packed -= sent(i);
    if (holding_.chunks->whole(i)) {
      std::memmove(slot(i), packed, elements(i) * sizeof(float));
    } else {
      expand(*holding_.chunks, i, holding_.step.selected, {},
             reinterpret_cast<const std::byte*>(packed), slot(i));
    }
    // What lies between slots is zero.
    std::byte* const end = step().pool + place_.layout.offset(i) + elements(i) * sizeof(float);
    std::byte* const next = step().pool + place_.layout.begin(place_.range.first + k + 1);
    std::memset(end, 0, static_cast<std::size_t>(next - end));
  }
}

void SparseBucket::pack() {
  const WireConversion& passage = step().passage;
  std::byte* to = data();
  for (std::size_t k = 0; k < place_.range.count; ++k) {
    const std::size_t i = gradient(k);
    PackFaults faults;
    if (!holding_.chunks->whole(i)) {
      to = holding_.residual->pack(i, addend(i), holding_.step, {type(), passage.wire_scale}, to,
                                   faults);
    } else if (passage.narrows()) {
      const kernels::ConvertCounts counts =
          kernels::narrow(type(), to, slot(i), elements(i), passage.factor_there());
      faults = {.overflowed = counts.overflow, .not_finite = counts.inf + counts.nan};
      to += elements(i) * size_of(type());
    } else {
      const std::array<const void*, 1> source = {slot(i)};
      kernels::reduce_into({.factor = 1 / passage.loss_scale}, to, source, elements(i));
      faults.not_finite = kernels::count_not_finite(DataType::F32, to, elements(i));
      to += elements(i) * sizeof(float);
    }
    note_faults(i, faults);
  }
}

void SparseBucket::note_faults(std::size_t i, const PackFaults& faults) {
  const std::uint64_t values = faults.overflowed + faults.not_finite;
  if (values == 0) return;
  Faults& all = step().faults;
  all.overflowed += faults.overflowed;
  all.not_finite += faults.not_finite;
  if (all.first != kNoGradient) return;
  all.first = i;
  all.in_first = values;
}

void SparseBucket::check_sums() {
  constexpr std::size_t kBlock = 4096;
  std::array<float, kBlock> widened;
  const std::byte* from = data();
  for (std::size_t k = 0; k < place_.range.count; ++k) {
    const std::size_t i = gradient(k);
    for (std::size_t left = sent(i); left > 0;) {
      const std::size_t count = std::min(kBlock, left);
      left -= count;
      if (!step().passage.narrows()) {
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
  const WireConversion& passage = step().passage;
  const PackedType packed{type(), passage.narrows() ? passage.factor_back() : 1};
  const std::byte* from = data();
  for (std::size_t k = 0; k < place_.range.count; ++k) {
    const std::size_t i = gradient(k);
    if (!holding_.chunks->whole(i)) {
      holding_.residual->commit(i, addend(i), holding_.step);
      expand(*holding_.chunks, i, holding_.step.selected, packed, from, slot(i));
    } else if (passage.narrows()) {
      kernels::widen(type(), slot(i), from, elements(i), packed.factor);
    } else {
      std::memcpy(slot(i), from, elements(i) * sizeof(float));
    }
    from += sent(i) * size_of(type());
  }
}

}  // namespace sluice::gradient
