// join.h - brings the ranks that a launcher started together, on one machine or on several.
#pragma once

#include <memory>

#include "bootstrap/environment.h"
#include "bootstrap/placement.h"
#include "transport/group.h"

namespace sluice::engine {

// Returns when all ranks have come, or fails with a sentence that says who has not. Ranks of one
// node meet in shared memory; to the others goes what SLUICE_TRANSPORT says, else MPI where MPI
// started the ranks, else TCP.
Result<std::unique_ptr<transport::Group>> join_ranks(const bootstrap::Environment& environment,
                                                     const bootstrap::Placement& placement,
                                                     transport::Clock::time_point deadline);

}  // namespace sluice::engine
