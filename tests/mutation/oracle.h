// oracle.h - what the interpreter says of a schedule after many interleavings.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/schedule.h"

namespace sluice::mutation {

struct Opinion {
  std::string fault;  // of the first interleaving that went wrong; "" if all went right
  bool race = false;  // the schedule has a race, whether or not an interleaving showed it
};

// Runs the schedule until something goes wrong, with numbers and, if it declares an order, with
// sums spelt out: so many interleavings of each. The same seed gives the same ones.
Opinion interpret(const Schedule& schedule, int interleavings, std::uint64_t seed);

}  // namespace sluice::mutation
