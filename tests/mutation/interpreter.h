// interpreter.h - runs a schedule, one random legal interleaving at a time.
//
// The oracle for verify(): short enough to be checked by eye against docs/execution-model.md, from
// which alone it was written. It knows nothing of expressions or wait-for graphs; it does whatever
// may be done next until nothing may, and looks at what the buffers then hold.
//
// Thread-safety: immutable once built; several threads may run() at once, each with its generator.
#pragma once

#include <random>
#include <string>
#include <vector>

#include "sluice/schedule.h"
#include "tests/mutation/events.h"
#include "tests/mutation/promise.h"
#include "tests/mutation/values.h"

namespace sluice::mutation {

class Interpreter {
 public:
  // Throws std::invalid_argument when the schedule is malformed.
  explicit Interpreter(const Schedule& schedule);

  // One interleaving, with a window of one or without bound and one rank slower than the others,
  // all drawn from random. Returns what went wrong (stuck, nothing read, a wrong output, outputs
  // that differ, a value that flows nowhere), or "". Value is Number, or Term if the schedule is
  // ordered.
  template <class Value>
  std::string run(std::mt19937_64& random) const;

  // Do two transfers of one step conflict? Then runs may differ, or agree by luck.
  bool has_race() const { return events_.race; }

 private:
  std::size_t cell(Place place, int chunk) const {
    const int index = (place.rank * buffers_ + place.buffer) * promise_.chunks + chunk;
    return static_cast<std::size_t>(index);
  }

  Promise promise_;
  int buffers_ = 1;  // of the rank that has most
  Events events_;
};

}  // namespace sluice::mutation
