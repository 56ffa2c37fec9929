// The plan of one rank among thousands takes milliseconds and megabytes. This is a separate
// program, because all memory of the process is counted.
#include <gtest/gtest.h>

#include <algorithm>
#include <ctime>

#include "engine/plan.h"
#include "tests/engine/counters.h"

namespace sluice::engine {
namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

TEST(PlanScale, ARankAmong4096TakesMillisecondsAndMegabytes) {
  constexpr int kRanks = 4096;
  constexpr long kMostBytes = 16L << 20;
  constexpr double kMostSeconds = 0.05 * SLUICE_SLOWDOWN;
  for (const char* name : {"ring", "torus", "halving_doubling", "halving_doubling:far", "direct",
                           "double_tree", "recursive_doubling", "hierarchical"}) {
    const Algorithm& algorithm = *find_algorithm(name).value();
    const Shape shape = complete_shape(algorithm, {.ranks = kRanks}).value();
    for (const Rank rank : {0, 1, 2047, 4095}) {
      const long before = bytes_in_use();
      forget_most_bytes();
      double seconds = 1;
      // The best of several times: others share the machine.
      for (int i = 0; i < 5; ++i) {
        const double begin = processor_seconds();
        const Program program = algorithm.program(shape, rank);
        const Plan plan{program, schedule::apply(algorithm.marks(shape, rank), program), kRanks};
        seconds = std::min(seconds, processor_seconds() - begin);
        EXPECT_EQ(plan.instructions().back().step + 1, algorithm.steps(shape));
      }
      EXPECT_LT(most_bytes_in_use() - before, kMostBytes) << name << ", rank " << rank;
      EXPECT_LT(seconds, kMostSeconds) << name << ", rank " << rank;
    }
  }
}

}  // namespace
}  // namespace sluice::engine
