// draw.h - a schedule as a picture for a terminal.
#pragma once

#include <string>

#include "sluice/schedule.h"

namespace sluice::cli {

inline constexpr int kMostDrawnRanks = 16;

// One row a step, one column a rank: what it sends and receives, and how much of every chunk's sum
// it then holds. REQUIRES: the schedule is proven and has at most kMostDrawnRanks ranks.
std::string draw(const Schedule& schedule);

}  // namespace sluice::cli
