// jitter.h - ranks that come late at random, the same for the same seed.
#pragma once

#include <cstdint>
#include <vector>

namespace sluice::simulate {

// How late each rank comes, evenly between 0 and `most_s`.
std::vector<double> lateness(double most_s, std::uint64_t seed, int ranks);

}  // namespace sluice::simulate
