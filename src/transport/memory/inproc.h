// inproc.h - ranks are threads of one process: every rank's memory is every rank's.
#pragma once

#include <memory>
#include <vector>

#include "transport/group.h"

namespace sluice::transport {

// One Group for each rank; each is then used by one thread.
std::vector<std::unique_ptr<Group>> make_inproc_groups(int ranks);

// The memory of a rank that is alone on its node.
std::shared_ptr<Memory> make_lone_memory();

}  // namespace sluice::transport
