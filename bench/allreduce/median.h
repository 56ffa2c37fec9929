// median.h - of some times: what is rarely disturbed is not in it.
#pragma once

#include <algorithm>
#include <vector>

namespace sluice::bench {

// REQUIRES: not empty.
inline double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ssize(values) / 2;
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace sluice::bench
