// straggler.h - ranks that are late: the slowest of many, and jitter.
//
// Every step waits for its slowest rank. The model was fixed before any comparison: the time of a
// rank's step is normally distributed, with a standard deviation of a fixed time plus a fraction of
// the compute time, the same on every cluster of GPUs. A step loses the expected largest deviation
// of its ranks.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::simulate {

struct Spread {
  double fixed_s = 0;
  double part = 0;  // of the compute time
};

// The fixed time is solved from the 77% of fujitsu-2048, whose rings leave 0.9 to 1.8 ms plausible.
// The fraction is assumed. `sluice reproduce` shows the results on other clusters.
inline constexpr Spread kGpuSpread{.fixed_s = 1.4e-3, .part = 0.01};
// Devices that share a clock.
inline constexpr Spread kSteadySpread{};

// The expected largest of n standard normal deviations (Blom's approximation): 0 for one rank, 2.1
// for 32, 3.4 for 2,048.
double expected_largest(int ranks);

// The time that the slowest rank loses against the mean.
double straggler_seconds(const Spread& spread, double compute_s, int ranks);

// Jitter: how late each rank starts, uniform between 0 and `most_s`; the same for the same seed.
std::vector<double> jitter(double most_s, std::uint64_t seed, int ranks);

}  // namespace sluice::simulate
