// simulate_trace.h - a simulated step as a timeline, in the format of a run's timeline.json.
#pragma once

#include <string>

#include "simulate/iteration.h"

namespace sluice::cli {

// A Chrome trace. Its process is called "rank 0, simulated".
std::string simulated_trace(const simulate::IterationTime& time);

}  // namespace sluice::cli
