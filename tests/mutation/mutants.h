// mutants.h - every single mutation of a schedule.
//
// One operation of one rank is dropped, listed twice, listed after its neighbour, sent to or
// awaited from another rank, given other chunks (another first one, one more, one fewer), given
// another buffer, turned from Copy to Reduce or back, given its sources in another order or one
// fewer, or moved to the step before or after.
#pragma once

#include <functional>
#include <string>

#include "sluice/schedule.h"

namespace sluice::mutation {

// Called with the mutant, which lives until it returns, and with what was done to it, in one line.
using MutantVisitor = std::function<void(const Schedule& mutant, const std::string& description)>;

void for_each_mutant(const Schedule& schedule, const MutantVisitor& visit);

}  // namespace sluice::mutation
