#include "gradient/bucket.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/convert.h"
#include "kernels/finite.h"
#include "kernels/reduce.h"

namespace sluice {

Bucket::Bucket(const Place& place, Step& step)
    : place_{place},
      step_{&step},
      begin_{place.layout.begin(place.range.first)},
      bytes_{place.layout.begin(place.range.first + place.range.count) - begin_} {}

std::int64_t Bucket::tell(const char* name, std::int64_t begin_ns) const {
  const std::int64_t now = step_->timeline->now_ns();
  step_->timeline->add({.name = name,
                        .lane = Timeline::Lane::Progress,
                        .number = static_cast<std::int64_t>(place_.number),
                        .begin_ns = begin_ns,
                        .end_ns = now});
  return now;
}

void Bucket::set_ready() {
  if (step_->timeline != nullptr && last_ns_ == kNever) last_ns_ = step_->timeline->now_ns();
}

void Bucket::load() {
  if (step_->timeline != nullptr) last_ns_ = tell("wait", last_ns_);
  const Passage& passage = step_->passage;
  if (narrowed()) {
    const ConvertCounts counts = narrow(type(), data(), floats(), count(), passage.factor_there());
    note_faults(counts.overflow, counts.inf + counts.nan);
  } else if (passage.loss_scaled) {
    note_faults(0, count_not_finite(type(), data(), count()));
  }
  if (step_->timeline != nullptr) last_ns_ = tell("load", last_ns_);
}

void Bucket::unload() {
  if (step_->timeline != nullptr) last_ns_ = tell("transfer", last_ns_);
  if (narrowed()) {
    widen_sums();
  } else if (step_->passage.loss_scaled) {
    unscale_means();
  }
  if (step_->timeline != nullptr) tell("unload", last_ns_);
  last_ns_ = kNever;
}

void Bucket::note_faults(std::uint64_t overflowed, std::uint64_t not_finite) {
  if (overflowed + not_finite == 0) return;
  Faults& faults = step_->faults;
  faults.overflowed += overflowed;
  faults.not_finite += not_finite;
  if (faults.first != kNoGradient) return;
  const Culprit culprit = first_not_finite();
  faults.first = culprit.gradient;
  faults.in_first = culprit.values;
}

void Bucket::widen_sums() {
  const Passage& passage = step_->passage;
  const float factor = passage.factor_back();
  if (passage.wire != WireType::F16 && !passage.loss_scaled) {
    widen(type(), floats(), data(), count(), factor);
    return;
  }
  const float largest = widen_checked(type(), floats(), data(), count(), factor);
  if (std::isfinite(largest)) {
    step_->largest = std::max(step_->largest, largest);
  } else if (step_->sums.on_wire == kNoGradient) {
    step_->sums.on_wire = first_not_finite().gradient;
  }
}

void Bucket::unscale_means() {
  constexpr std::size_t kBlock = 4096;  // scaled and looked at while it is in the cache
  const Reduction scaling{.type = type(), .factor = 1 / step_->passage.loss_scale};
  std::uint64_t not_finite = 0;
  for (std::size_t first = 0; first < count(); first += kBlock) {
    std::byte* const block = data() + first * size_of(type());
    const std::array<const void*, 1> source = {block};
    const std::size_t size = std::min(kBlock, count() - first);
    reduce_into(scaling, block, source, size);
    not_finite += count_not_finite(type(), block, size);
  }
  if (not_finite > 0 && step_->sums.in_pool == kNoGradient)
    step_->sums.in_pool = first_not_finite().gradient;
}

Bucket::Culprit Bucket::first_not_finite() const {
  const PoolLayout& layout = place_.layout;
  for (std::size_t k = 0; k < place_.range.count; ++k) {
    const std::size_t i = layout.order()[place_.range.first + k];
    const std::size_t elements = (layout.offset(i) - begin_) / size_of(place_.range.type);
    const std::byte* const from = data() + elements * size_of(type());
    const std::uint64_t values = count_not_finite(type(), from, place_.gradients[i].count);
    if (values > 0) return {i, values};
  }
  return {};
}

}  // namespace sluice
