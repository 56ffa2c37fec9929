// values.h - what every place holds at the end, and whether every value was needed.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "schedule/event_graph.h"
#include "sluice/schedule.h"

namespace sluice::schedule {

// Evaluates the schedule with symbols, chunk by chunk, in the given order of its events, and holds
// the outcome to what the collective promises. "" or one sentence.
std::string why_wrong_values(const Schedule& schedule, const EventGraph& graph,
                             std::span<const std::uint32_t> order);

}  // namespace sluice::schedule
