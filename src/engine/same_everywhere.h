// same_everywhere.h - whether all ranks have one value.
#pragma once

#include <cstdint>

#include "sluice/communicator.h"

namespace sluice::engine {

// The same answer at every rank, each of which must call it. Throws Error, as Work::wait() does.
bool same_everywhere(Communicator& communicator, std::uint64_t value);

}  // namespace sluice::engine
