#include "simulate/straggler.h"

#include <cmath>

namespace sluice::simulate {
namespace {

// Where the normal distribution reaches p, by bisection of its closed form.
double normal_quantile(double p) {
  double low = -10;
  double high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (0.5 * std::erfc(-middle / std::sqrt(2.0)) < p ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace

double expected_largest(int ranks) {
  if (ranks < 2) return 0;
  return normal_quantile((ranks - 0.375) / (ranks + 0.25));
}

double straggler_seconds(const Spread& spread, double compute_s, int ranks) {
  return expected_largest(ranks) * (spread.fixed_s + spread.part * compute_s);
}

}  // namespace sluice::simulate
