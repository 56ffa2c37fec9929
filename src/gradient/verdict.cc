#include "gradient/verdict.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "base/format.h"

namespace sluice::gradient {
namespace {

// " (f16 wire, scale 2^4)", or "" where the gradient travels as it is.
std::string way_of(const GradientSpec& gradient, const WireConversion& passage) {
  if (gradient.type != DataType::F32 || passage.wire == WireType::F32) return "";
  if (passage.wire == WireType::BF16) return " (bf16 wire)";
  return base::format(" (f16 wire, scale 2^{})", std::ilogb(passage.wire_scale));
}

std::string tell(const Faults& faults, std::size_t rank, const WireConversion& passage,
                 const std::vector<GradientSpec>& gradients) {
  const GradientSpec& first = gradients[faults.first];
  const std::uint64_t others = faults.values() - std::min(faults.values(), faults.in_first);
  const bool one = faults.values() == 1;
  std::string text = base::format("{} value{} of \"{}\"", faults.in_first,
                                  faults.in_first == 1 ? "" : "s", first.name);
  if (others > 0) text += base::format(" and {} of others", others);
  const std::string_view what = faults.not_finite == 0 ? "overflowed"
                                : one                  ? "was not finite"
                                                       : "were not finite";
  return base::format("{} {} at rank {}{}", text, what, rank, way_of(first, passage));
}

std::string warning_of(const std::vector<Faults>& ranks, const SumFaults& sums,
                       const WireConversion& passage, const std::vector<GradientSpec>& gradients) {
  constexpr int kNamed = 4;
  std::string warning;
  int faulty = 0;
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
    if (ranks[rank].first == kNoGradient || ++faulty > kNamed) continue;
    if (!warning.empty()) warning += "; ";
    warning += tell(ranks[rank], rank, passage, gradients);
  }
  if (faulty > kNamed) warning += base::format("; and at {} more ranks", faulty - kNamed);
  if (faulty > 0) return warning;
  const GradientSpec& first = gradients[sums.on_wire != kNoGradient ? sums.on_wire : sums.in_pool];
  return base::format("the sum of \"{}\" over the ranks overflowed{}", first.name,
                      way_of(first, passage));
}

}  // namespace

Verdict judge(const std::vector<Faults>& ranks, const SumFaults& sums,
              const WireConversion& passage, const std::vector<GradientSpec>& gradients) {
  bool overflowed = false;
  bool not_finite = false;
  for (const Faults& faults : ranks) {
    overflowed = overflowed || faults.overflowed > 0;
    not_finite = not_finite || faults.not_finite > 0;
  }
  const bool in_sums_alone = !overflowed && !not_finite && sums.any();
  if (!overflowed && !not_finite && !in_sums_alone) return {};
  if (in_sums_alone) {
    overflowed = sums.on_wire != kNoGradient;
    not_finite = sums.in_pool != kNoGradient;
  }
  const bool scaled_wire = passage.wire == WireType::F16;
  return {.skipped = scaled_wire || passage.loss_scaled,
          .lower_wire_scale = overflowed && scaled_wire,
          .lower_loss_scale = passage.loss_scaled && (not_finite || !scaled_wire),
          .warning = warning_of(ranks, sums, passage, gradients)};
}

}  // namespace sluice::gradient
