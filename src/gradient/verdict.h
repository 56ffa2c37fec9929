// faults.h - values that are not finite, or are no more once they are narrowed for the wire.
//
// verdict.h - what the faults of a step mean: a pure function of what all ranks know alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gradient/layout.h"
#include "gradient/wire/wire.h"

namespace sluice::gradient {

inline constexpr std::size_t kNoGradient = std::numeric_limits<std::size_t>::max();

// Of one rank's gradients in one step, before they are added.
struct Faults {
  std::uint64_t overflowed = 0;  // finite, but too large for the wire type
  std::uint64_t not_finite = 0;  // before it was narrowed
  std::size_t first = kNoGradient;
  std::uint64_t in_first = 0;  // of those values, in that gradient

  std::uint64_t values() const { return overflowed + not_finite; }
  bool operator==(const Faults&) const = default;
};

// Of the sums, the same at every rank. Gradients are the first of their kind.
struct SumFaults {
  std::size_t on_wire = kNoGradient;  // that was narrowed
  std::size_t in_pool = kNoGradient;  // that travelled as it is
  bool any() const { return on_wire != kNoGradient || in_pool != kNoGradient; }
};

struct Verdict {
  bool skipped = false;
  bool lower_wire_scale = false;
  bool lower_loss_scale = false;
  std::string warning;
};

// `ranks`: the faults of each. An infinity or NaN in a gradient lowers the loss scale; a value or a
// sum that was too large for f16 alone lowers the wire scale. Allocates only where there are
// faults.
Verdict judge(const std::vector<Faults>& ranks, const SumFaults& sums,
              const WireConversion& passage, const std::vector<GradientSpec>& gradients);

}  // namespace sluice::gradient
