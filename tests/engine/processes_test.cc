// Ranks as processes: `sluice launch -n N -- engine_processes_test`.
#include <gtest/gtest.h>

#include "tests/engine/conformance.h"
#include "tests/engine/in_process.h"

namespace sluice {
namespace {

// One for the whole process: ranks join once.
Communicator& world() {
  static Communicator communicator = [] {
    Communicator joined = Communicator::from_env();
    joined.set_deadline(kTestDeadline);
    return joined;
  }();
  return communicator;
}

TEST(Processes, EveryAlgorithmAndCollectiveInPoolsAndForeignMemory) {
  conformance::every_algorithm_and_collective(world());
}
TEST(Processes, EveryType) { conformance::every_type(world()); }
TEST(Processes, SomeRanksInPoolsAndOthersNot) {
  conformance::some_ranks_in_pools_and_others_not(world());
}
TEST(Processes, MinMaxAndMean) { conformance::min_max_and_mean(world()); }
TEST(Processes, AllRanksHoldTheSameBits) { conformance::all_ranks_hold_the_same_bits(world()); }

TEST(Processes, SplitInHalves) {
  Communicator half = world().split(world().rank() % 2);
  conformance::every_type(half);
  world().barrier();
}

}  // namespace
}  // namespace sluice
