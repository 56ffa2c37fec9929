// world.h - the communicator of a test program that a launcher starts as one rank of several.
#pragma once

#include "sluice/communicator.h"
#include "tests/engine/in_process.h"

namespace sluice::engine {

// One for the whole process: ranks join once.
inline Communicator& world() {
  static Communicator communicator = [] {
    Communicator joined = Communicator::from_env();
    joined.set_deadline(kTestDeadline);
    return joined;
  }();
  return communicator;
}

}  // namespace sluice::engine
