// verdict.h - what the faults of a step mean: a pure function of what all ranks know alike.
#pragma once

#include <string>
#include <vector>

#include "gradient/faults.h"
#include "gradient/gradient_spec.h"
#include "gradient/wire/wire.h"

namespace sluice::gradient {

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
