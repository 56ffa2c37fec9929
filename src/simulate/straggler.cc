#include "simulate/straggler.h"

#include <cmath>

#include "base/random.h"

namespace sluice::simulate {
namespace {

// The quantile of the standard normal distribution, by bisection.
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

std::vector<double> jitter(double most_s, std::uint64_t seed, int ranks) {
  constexpr double kBits = 1ULL << 53U;
  std::vector<double> delays_s;
  for (int rank = 0; rank < ranks; ++rank) {
    base::Random random{base::mixed({seed, static_cast<std::uint64_t>(rank)})};
    delays_s.push_back(most_s * static_cast<double>(random.next() >> 11U) / kBits);
  }
  return delays_s;
}

}  // namespace sluice::simulate
