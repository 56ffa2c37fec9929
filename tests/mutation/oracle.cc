#include "tests/mutation/oracle.h"

#include <optional>
#include <random>
#include <stdexcept>

#include "tests/mutation/interpreter.h"

namespace sluice::mutation {

Opinion interpret(const Schedule& schedule, int interleavings, std::uint64_t seed) {
  std::optional<Interpreter> interpreter;
  try {
    interpreter.emplace(schedule);
  } catch (const std::invalid_argument& malformed) {
    return {malformed.what()};
  }
  std::mt19937_64 random{seed};
  Opinion opinion{.fault = "", .race = interpreter->has_race()};
  for (int i = 0; i < interleavings && opinion.fault.empty(); ++i) {
    opinion.fault = interpreter->run<Number>(random);
    if (schedule.ordered && opinion.fault.empty()) opinion.fault = interpreter->run<Term>(random);
  }
  return opinion;
}

}  // namespace sluice::mutation
