// arrivals.h - which elements of a gradient have arrived, where only some were sent.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <span>

namespace sluice {

// Elements in the order of the parameter's memory.
struct ElementRange {
  std::size_t first = 0;
  std::size_t count = 0;
};

// What of one parameter's gradient is there to be used.
struct Arrival {
  bool whole = true;
  // Where it is not whole: rising, none touching another's elements. Valid until the next step.
  std::span<const ElementRange> ranges;
  // The gradient holds the weight decay already: it was added before the gradient was sent.
  bool decayed = false;
  // What Lars is to take for the gradient's norm; negative: that of the gradient.
  double gradient_norm = -1;
};

class Arrivals {
 public:
  virtual ~Arrivals() = default;
  // Of the step under way.
  virtual Arrival of(const torch::Tensor& parameter) const = 0;
};

}  // namespace sluice
