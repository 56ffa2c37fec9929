// cores.h - which cores a rank of this machine computes on.
#pragma once

#include <span>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::bootstrap {

// Those a process may run on, which a container or taskset may have made fewer; 0: this one.
std::vector<int> usable_cores(int process = 0);

// Consecutive cores of equal number, give or take one; where there are more ranks than cores each
// has one, and all cores have equally many ranks, give or take one. REQUIRES: cores is not empty.
std::span<const int> share_of_cores(std::span<const int> cores, int ranks, Rank rank);

// False where the system does not allow it. Async-signal-safe.
bool pin_to(std::span<const int> cores);

}  // namespace sluice::bootstrap
