#include "gradient/bucket.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/convert.h"
#include "kernels/norms.h"
#include "kernels/reduce.h"

namespace sluice::gradient {

std::int64_t Bucket::record(const char* name, std::int64_t begin_ns) const {
  const std::int64_t now = step_->timeline->now_ns();
  step_->timeline->add({.name = name,
                        .thread = Timeline::Thread::Progress,
                        .number = static_cast<std::int64_t>(spec_.number),
                        .begin_ns = begin_ns,
                        .end_ns = now});
  return now;
}

void Bucket::set_ready() {
  if (step_->timeline != nullptr && last_ns_ == kNever) last_ns_ = step_->timeline->now_ns();
}

void Bucket::load() {
  if (step_->timeline != nullptr) last_ns_ = record("wait", last_ns_);
  fill();
  if (step_->timeline != nullptr) last_ns_ = record("load", last_ns_);
}

void Bucket::unload() {
  if (step_->timeline != nullptr) last_ns_ = record("transfer", last_ns_);
  drain();
  if (step_->timeline != nullptr) record("unload", last_ns_);
  last_ns_ = kNever;
}

void Bucket::process_unsent() {
  fill();
  drain();
}

DenseBucket::DenseBucket(const BucketSpec& spec, StepContext& step)
    : Bucket{spec, step},
      bytes_{spec.layout.begin(spec.range.first + spec.range.count) -
             spec.layout.begin(spec.range.first)} {}

void DenseBucket::fill() {
  const WireConversion& conversion = step().conversion;
  if (narrowed()) {
    const kernels::ConvertCounts counts =
        kernels::narrow(type(), data(), floats(), count(), conversion.narrow_factor());
    count_overflow(counts.overflow, counts.inf + counts.nan);
  } else if (conversion.loss_scaled) {
    count_overflow(0, kernels::count_not_finite(type(), data(), count()));
  }
}

void DenseBucket::drain() {
  if (narrowed()) {
    widen_sums();
  } else if (step().conversion.loss_scaled) {
    unscale_means();
  }
}

void DenseBucket::count_overflow(std::uint64_t overflowed, std::uint64_t not_finite) {
  if (overflowed + not_finite == 0) return;
  OverflowCounts& counts = step().counts;
  counts.overflowed += overflowed;
  counts.not_finite += not_finite;
  if (counts.first != kNoGradient) return;
  const FirstOverflow found = first_overflow();
  counts.first = found.gradient;
  counts.in_first = found.values;
}

void DenseBucket::widen_sums() {
  const WireConversion& conversion = step().conversion;
  const float factor = conversion.widen_factor();
  if (conversion.wire != WireType::F16 && !conversion.loss_scaled) {
    kernels::widen(type(), floats(), data(), count(), factor);
    return;
  }
  const float largest = kernels::widen_checked(type(), floats(), data(), count(), factor);
  if (std::isfinite(largest)) {
    step().largest = std::max(step().largest, largest);
  } else if (step().sums.on_wire == kNoGradient) {
    step().sums.on_wire = first_overflow().gradient;
  }
}

void DenseBucket::unscale_means() {
  constexpr std::size_t kBlock = 4096;  // elements; scaled and checked while in the cache
  const kernels::Reduction scaling{.type = type(), .factor = 1 / step().conversion.loss_scale};
  std::uint64_t not_finite = 0;
  for (std::size_t first = 0; first < count(); first += kBlock) {
    std::byte* const block = data() + first * size_of(type());
    const std::array<const void*, 1> source = {block};
    const std::size_t size = std::min(kBlock, count() - first);
    kernels::reduce_into(scaling, block, source, size);
    not_finite += kernels::count_not_finite(type(), block, size);
  }
  if (not_finite > 0 && step().sums.in_pool == kNoGradient)
    step().sums.in_pool = first_overflow().gradient;
}

DenseBucket::FirstOverflow DenseBucket::first_overflow() const {
  const PoolLayout& layout = spec().layout;
  const std::size_t begin = layout.begin(spec().range.first);
  for (std::size_t k = 0; k < spec().range.count; ++k) {
    const std::size_t i = gradient(k);
    const std::size_t elements = (layout.offset(i) - begin) / size_of(spec().range.type);
    const std::byte* const from = data() + elements * size_of(type());
    const std::uint64_t values = kernels::count_not_finite(type(), from, spec().gradients[i].count);
    if (values > 0) return {i, values};
  }
  return {};
}

}  // namespace sluice::gradient
