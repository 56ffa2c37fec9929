// arrivals.h - which elements of a gradient have arrived, where only some were sent.
#pragma once

#include <torch/types.h>

#include <span>

#include "sluice/gradients.h"

namespace sluice {

// What of one parameter's gradient is there to be used.
struct Arrival {
  bool whole = true;
  // Elements in the order of the parameter's memory; rising, none in two parts. A part is the same
  // elements whenever it comes. Where it is whole: all of them, or none where it always will be.
  // Valid until the next step.
  std::span<const GradientPart> parts;
  // The gradient holds the weight decay already: it was added before the gradient was sent.
  bool decayed = false;
};

class Arrivals {
 public:
  virtual ~Arrivals() = default;
  // Of the step under way.
  virtual Arrival of(const torch::Tensor& parameter) const = 0;
};

}  // namespace sluice
