// normalization.h - pixels as numbers with mean 0 and deviation 1.
#pragma once

#include <vector>

namespace sluice::data {

// One value a channel, in units of pixels (0 to 255).
struct Normalization {
  std::vector<double> mean;
  std::vector<double> deviation;  // greater than 0
};

}  // namespace sluice::data
