// agreement.h - what all ranks of a job go by: rank 0's constants and the order of the nodes.
//
// On one node the constants are those measured there (constants.h). Between nodes they are those of
// the cluster file that SLUICE_TOPOLOGY names at rank 0, else they are measured at every start:
// tenths of a second, for which host will meet which network is not known before.
#pragma once

#include "bootstrap/environment.h"
#include "engine/select/choices.h"
#include "sluice/communicator.h"
#include "transport/group.h"

namespace sluice::engine {

// Every rank must call it. Throws what the collectives throw, and Error at a wrong file.
Choices agreed_choices(Communicator& communicator, const transport::Group& group,
                       const bootstrap::Environment& environment);

}  // namespace sluice::engine
