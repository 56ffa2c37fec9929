// straggler.h - how late ranks are: the slowest of many, and jitter.
//
// Every step waits for its slowest rank. The time of a rank's step is normally distributed. Its
// standard deviation is a fixed time plus a fraction of the compute time, the same on every cluster
// of GPUs. A step takes longer by the expected largest deviation of its ranks. This model was
// chosen before any comparison.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::simulate {

// The standard deviation of the time of a step.
struct Spread {
  double fixed_s = 0;
  double part = 0;  // of the compute time
};

// The fixed time is solved from the efficiency of fujitsu-2048, 77%; 0.9 to 1.8 ms are plausible
// for its rings. The fraction is assumed. `sluice reproduce` shows the results on other clusters.
inline constexpr Spread kGpuSpread{.fixed_s = 1.4e-3, .part = 0.01};
// Devices that share a clock.
inline constexpr Spread kSteadySpread{};

// The expected largest of n standard normal deviations (Blom's approximation): 0 for one rank, 2.1
// for 32, 3.4 for 2,048.
double expected_largest(int ranks);

// The time that the slowest rank loses against the mean.
double straggler_seconds(const Spread& spread, double compute_s, int ranks);

// Jitter: the delay of each rank's start, uniform between 0 and `most_s`. The same seed gives the
// same delays.
std::vector<double> jitter(double most_s, std::uint64_t seed, int ranks);

}  // namespace sluice::simulate
