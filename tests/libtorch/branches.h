// branches.h - a network whose ranks take different branches trains as one rank would.
#pragma once

#include "sluice/communicator.h"

namespace sluice::libtorch::equivalence {

// Called by every rank. Samples choose the branch, so that a rank may have none for either; one
// layer has work in some steps only, at one rank, and one never has any.
void branches_equal_one(Communicator& comm);

}  // namespace sluice::libtorch::equivalence
