// The ranks are processes: `sluice launch -n N -- engine_processes_test`.
#include <gtest/gtest.h>

#include "tests/engine/conformance.h"
#include "tests/engine/ranks.h"
#include "tests/engine/recorded_hooks.h"
#include "tests/engine/reduction_conformance.h"

namespace sluice::engine {
namespace {

TEST(Processes, AllAlgorithmsAndCollectivesAreRightInPooledAndForeignMemory) {
  conformance::all_algorithms_and_collectives(world());
}
TEST(Processes, EveryTypeAndOperationIsRight) { conformance::every_type_and_operation(world()); }
TEST(Processes, EveryOperationIsRightByEveryAlgorithm) {
  conformance::every_operation_by_every_algorithm(world());
}
TEST(Processes, IllegalOperationsAreErrors) { conformance::illegal_operations_are_errors(world()); }
TEST(Processes, InputAndOutputMayBeApart) { conformance::input_and_output_apart(world()); }
TEST(Processes, WrongArgumentsAreErrors) { conformance::wrong_arguments_are_errors(world()); }
TEST(Processes, SomeRanksMayUsePooledMemoryAndOthersForeign) {
  conformance::some_ranks_in_pools_and_others_not(world());
}
TEST(Processes, AllRanksHoldTheSameBits) { conformance::all_ranks_hold_the_same_bits(world()); }

TEST(Processes, BackgroundCollectivesRunBesideTheCallersOwn) {
  Communicator own = world().split(0, world().rank());
  for (int round = 0; round < 5; ++round) {
    BackgroundSums sums{own, 4, 100'000};
    std::vector<Work> works;
    for (int e = 0; e < 4; ++e) works.push_back(sums.issue(own, e));
    std::vector<float> ones(1000, 1);
    world().all_reduce(ones).wait();
    EXPECT_EQ(ones[999], static_cast<float>(world().size()));
    for (Work& work : works) work.wait();
    sums.expect_sums(own.size());
  }
}

// The rank has a progress thread from here on.
TEST(Processes, HalvesOfTheRanksRunSideBySide) {
  Communicator half = world().split(world().rank() % 2);
  conformance::every_type_and_operation(half);
  world().barrier();
}

}  // namespace
}  // namespace sluice::engine
