// straggler.h - how much later than the mean the last of many ranks is.
//
// Every step waits for its slowest rank. The form, taken before anything is compared: a rank's step
// varies normally about its mean, with a spread of a fixed time and a part of the compute time, the
// same on every cluster of GPUs; what a step loses is the expected largest of n such deviations.
#pragma once

namespace sluice::simulate {

struct Spread {
  double fixed_s = 0;
  double part = 0;  // of the compute time
};

// Solved from the 77% of fujitsu-2048, whose rings leave 0.9 to 1.8 ms plausible; the part is
// assumed. `sluice reproduce` shows what follows from it elsewhere.
inline constexpr Spread kGpuSpread{.fixed_s = 1.4e-3, .part = 0.01};
// Devices of one clock.
inline constexpr Spread kSteadySpread{};

// The expected largest of n standard normal deviations (Blom's approximation): 0 for one rank, 2.1
// for 32, 3.4 for 2,048.
double expected_largest(int ranks);

// What the slowest rank loses against the mean.
double straggler_seconds(const Spread& spread, double compute_s, int ranks);

}  // namespace sluice::simulate
