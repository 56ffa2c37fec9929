// draw.h - a schedule as a picture for a terminal.
#pragma once

#include <string>

#include "sluice/schedule.h"

namespace sluice::cli {

inline constexpr int kMostDrawnRanks = 16;

// A row per step and a column per rank: the transfers of the rank, and how much of each chunk's
// result it holds afterwards. REQUIRES: the schedule is proven, with at most kMostDrawnRanks ranks.
std::string draw(const Schedule& schedule);

}  // namespace sluice::cli
