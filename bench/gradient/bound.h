// bound.h - how soon gradients can have been averaged, given when backward makes them.
#pragma once

#include <algorithm>
#include <span>

namespace sluice::bench {

// A gradient, in the order in which they are made.
struct ReadyGradient {
  double ready_s = 0;  // since the step began
  double bytes = 0;    // that its rank has to send
};

// When the last has been sent, if the link carries what is ready at its full rate and is idle only
// when nothing is.
inline double earliest_end(std::span<const ReadyGradient> gradients, double bytes_per_s) {
  double free_s = 0;
  for (const ReadyGradient& gradient : gradients)
    free_s = std::max(free_s, gradient.ready_s) + gradient.bytes / bytes_per_s;
  return free_s;
}

}  // namespace sluice::bench
