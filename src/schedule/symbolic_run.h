// symbolic_run.h - runs a schedule with symbols and checks the result of every rank.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "schedule/event_graph.h"
#include "sluice/schedule.h"

namespace sluice::schedule {

// Runs the events in the given order, chunk by chunk. A value is the sum of the contributions that
// went into it; equal sums have equal bits. Checks that the final values are what the collective
// promises, and that every value that was written is used. Returns "", or one sentence that
// explains the error. REQUIRES: `order` is from graph.order() and has all events.
std::string symbolic_run_error(const Schedule& schedule, const EventGraph& graph,
                               std::span<const std::uint32_t> order);

}  // namespace sluice::schedule
