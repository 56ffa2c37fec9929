#include "gradient/wire/wire.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>

#include "base/format.h"
#include "engine/internal_collectives.h"

namespace sluice::gradient {
namespace {

// The wire scale brings the largest sum to at least this value, and below twice this value.
constexpr float kTarget = 0x1p11F;

// " (f16 wire, scale 2^4)", or "" if the gradient is sent unchanged.
std::string wire_description(const GradientSpec& gradient, const WireConversion& conversion) {
  if (gradient.type != DataType::F32 || conversion.wire == WireType::F32) return "";
  if (conversion.wire == WireType::BF16) return " (bf16 wire)";
  return base::format(" (f16 wire, scale 2^{})", std::ilogb(conversion.wire_scale));
}

std::string describe(const OverflowCounts& counts, std::size_t rank,
                     const WireConversion& conversion, const std::vector<GradientSpec>& gradients) {
  const GradientSpec& first = gradients[counts.first];
  const std::uint64_t others = counts.values() - std::min(counts.values(), counts.in_first);
  const bool one = counts.values() == 1;
  std::string text = base::format("{} value{} of \"{}\"", counts.in_first,
                                  counts.in_first == 1 ? "" : "s", first.name);
  if (others > 0) text += base::format(" and {} of other gradients", others);
  const std::string_view problem = counts.not_finite == 0 ? "overflowed"
                                   : one                  ? "was not finite"
                                                          : "were not finite";
  return base::format("{} {} at rank {}{}", text, problem, rank,
                      wire_description(first, conversion));
}

std::string warning_of(const std::vector<OverflowCounts>& ranks, const OverflowedSums& sums,
                       const WireConversion& conversion,
                       const std::vector<GradientSpec>& gradients) {
  constexpr int kNamed = 4;
  std::string warning;
  int overflowed = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].first == kNoGradient || ++overflowed > kNamed) continue;
    if (!warning.empty()) warning += "; ";
    warning += describe(ranks[rank], rank, conversion, gradients);
  }
  if (overflowed > kNamed) warning += base::format("; and at {} more ranks", overflowed - kNamed);
  if (overflowed > 0) return warning;
  const GradientSpec& first = gradients[sums.on_wire != kNoGradient ? sums.on_wire : sums.in_pool];
  return base::format("the sum of \"{}\" over the ranks overflowed{}", first.name,
                      wire_description(first, conversion));
}

}  // namespace

WireType agreed_wire(Communicator& communicator, const GradientOptions& options) {
  if (options.wire == WireType::F32 || options.force_wire) return options.wire;
  const bool on_one_node =
      engine::same_everywhere(communicator, static_cast<std::uint64_t>(communicator.node()));
  return on_one_node ? WireType::F32 : options.wire;
}

void LossScale::update(double used, bool overflow) {
  if (!options_.enabled || used != value_) return;
  if (overflow) {
    value_ = std::max(value_ / 2, kSmallestScale);
    clean_steps_ = 0;
  } else if (++clean_steps_ >= options_.growth_steps) {
    value_ = std::min(value_ * 2, kLargestScale);
    clean_steps_ = 0;
  }
}

void WireScale::update(float used, float largest) {
  if (largest <= 0) return;
  const double wanted = std::ldexp(double{used} * kTarget, -std::ilogb(largest));
  value_ = static_cast<float>(std::clamp(wanted, kSmallestScale, kLargestScale));
}

void WireScale::lower(float used) {
  if (used == value_) value_ = std::max(value_ / 2, static_cast<float>(kSmallestScale));
}

OverflowDecision decide_overflow(const std::vector<OverflowCounts>& ranks,
                                 const OverflowedSums& sums, const WireConversion& conversion,
                                 const std::vector<GradientSpec>& gradients) {
  bool overflowed = false;
  bool not_finite = false;
  for (const OverflowCounts& counts : ranks) {
    overflowed = overflowed || counts.overflowed > 0;
    not_finite = not_finite || counts.not_finite > 0;
  }
  const bool in_sums_alone = !overflowed && !not_finite && sums.any();
  if (!overflowed && !not_finite && !in_sums_alone) return {};
  if (in_sums_alone) {
    overflowed = sums.on_wire != kNoGradient;
    not_finite = sums.in_pool != kNoGradient;
  }
  const bool scaled_wire = conversion.wire == WireType::F16;
  return {.finished = {.skipped = scaled_wire || conversion.loss_scaled,
                       .warning = warning_of(ranks, sums, conversion, gradients)},
          .lower_wire_scale = overflowed && scaled_wire,
          .lower_loss_scale = conversion.loss_scaled && (not_finite || !scaled_wire)};
}

}  // namespace sluice::gradient
