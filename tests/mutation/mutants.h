// mutants.h - all mutants of a schedule that differ from it in one operation.
//
// A mutation drops one operation of one rank, lists it twice or after the next one, gives it
// another peer, other chunks (another first one, one more, one fewer), another buffer, another
// order of its sources or one source fewer, makes a Reduce of a Copy or a Copy of a Reduce, or
// moves it to the step before or after.
#pragma once

#include <functional>
#include <string>

#include "sluice/schedule.h"

namespace sluice::mutation {

// Receives the mutant, which is valid during the call, and a description of one line.
using MutantVisitor = std::function<void(const Schedule& mutant, const std::string& description)>;

void for_each_mutant(const Schedule& schedule, const MutantVisitor& visit);

}  // namespace sluice::mutation
