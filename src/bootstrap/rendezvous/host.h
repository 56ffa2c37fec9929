// host.h - what this machine is called, and what tells it from others.
#pragma once

#include <string>

namespace sluice::bootstrap {

std::string host_name();

// What tells machines apart whose processes can share memory from those that cannot: two processes
// see the same text exactly when they are on one machine and in one network namespace.
std::string node_identity();

}  // namespace sluice::bootstrap
