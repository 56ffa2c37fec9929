#include "gradient/bucket.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/convert.h"
#include "kernels/norms.h"
#include "kernels/reduce.h"

namespace sluice::gradient {

std::int64_t Bucket::tell(const char* name, std::int64_t begin_ns) const {
  const std::int64_t now = step_->timeline->now_ns();
  step_->timeline->add({.name = name,
                        .lane = Timeline::Lane::Progress,
                        .number = static_cast<std::int64_t>(number_),
                        .begin_ns = begin_ns,
                        .end_ns = now});
  return now;
}

void Bucket::set_ready() {
  if (step_->timeline != nullptr && last_ns_ == kNever) last_ns_ = step_->timeline->now_ns();
}

void Bucket::load() {
  if (step_->timeline != nullptr) last_ns_ = tell("wait", last_ns_);
  fill();
  if (step_->timeline != nullptr) last_ns_ = tell("load", last_ns_);
}

void Bucket::unload() {
  if (step_->timeline != nullptr) last_ns_ = tell("transfer", last_ns_);
  drain();
  if (step_->timeline != nullptr) tell("unload", last_ns_);
  last_ns_ = kNever;
}

void Bucket::pass_by() {
  fill();
  drain();
}

DenseBucket::DenseBucket(const Place& place, StepContext& step)
    : Bucket{place.number, step},
      place_{place},
      begin_{place.layout.begin(place.range.first)},
      bytes_{place.layout.begin(place.range.first + place.range.count) - begin_} {}

void DenseBucket::fill() {
  const WireConversion& passage = step().passage;
  if (narrowed()) {
    const kernels::ConvertCounts counts =
        kernels::narrow(type(), data(), floats(), count(), passage.factor_there());
    note_faults(counts.overflow, counts.inf + counts.nan);
  } else if (passage.loss_scaled) {
    note_faults(0, kernels::count_not_finite(type(), data(), count()));
  }
}

void DenseBucket::drain() {
  if (narrowed()) {
    widen_sums();
  } else if (step().passage.loss_scaled) {
    unscale_means();
  }
}

void DenseBucket::note_faults(std::uint64_t overflowed, std::uint64_t not_finite) {
  if (overflowed + not_finite == 0) return;
  Faults& faults = step().faults;
  faults.overflowed += overflowed;
  faults.not_finite += not_finite;
  if (faults.first != kNoGradient) return;
  const Culprit culprit = first_not_finite();
  faults.first = culprit.gradient;
  faults.in_first = culprit.values;
}

void DenseBucket::widen_sums() {
  const WireConversion& passage = step().passage;
  const float factor = passage.factor_back();
  if (passage.wire != WireType::F16 && !passage.loss_scaled) {
    kernels::widen(type(), floats(), data(), count(), factor);
    return;
  }
  const float largest = kernels::widen_checked(type(), floats(), data(), count(), factor);
  if (std::isfinite(largest)) {
    step().largest = std::max(step().largest, largest);
  } else if (step().sums.on_wire == kNoGradient) {
    step().sums.on_wire = first_not_finite().gradient;
  }
}

void DenseBucket::unscale_means() {
  constexpr std::size_t kBlock = 4096;  // scaled and looked at while it is in the cache
  const kernels::Reduction scaling{.type = type(), .factor = 1 / step().passage.loss_scale};
  std::uint64_t not_finite = 0;
  for (std::size_t first = 0; first < count(); first += kBlock) {
    std::byte* const block = data() + first * size_of(type());
    const std::array<const void*, 1> source = {block};
    const std::size_t size = std::min(kBlock, count() - first);
    kernels::reduce_into(scaling, block, source, size);
    not_finite += kernels::count_not_finite(type(), block, size);
  }
  if (not_finite > 0 && step().sums.in_pool == kNoGradient)
    step().sums.in_pool = first_not_finite().gradient;
}

DenseBucket::Culprit DenseBucket::first_not_finite() const {
  const PoolLayout& layout = place_.layout;
  for (std::size_t k = 0; k < place_.range.count; ++k) {
    const std::size_t i = layout.order()[place_.range.first + k];
    const std::size_t elements = (layout.offset(i) - begin_) / size_of(place_.range.type);
    const std::byte* const from = data() + elements * size_of(type());
    const std::uint64_t values = kernels::count_not_finite(type(), from, place_.gradients[i].count);
    if (values > 0) return {i, values};
  }
  return {};
}

}  // namespace sluice::gradient
