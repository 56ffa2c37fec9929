// Ranks as threads.
#include "tests/engine/conformance.h"

#include <gtest/gtest.h>

#include "tests/engine/ranks.h"

namespace sluice::engine {
namespace {

class Conformance : public testing::TestWithParam<int> {};

TEST_P(Conformance, EveryAlgorithmAndCollectiveInPoolsAndForeignMemory) {
  run_ranks(GetParam(), conformance::every_algorithm_and_collective);
}

TEST_P(Conformance, EveryType) { run_ranks(GetParam(), conformance::every_type); }

TEST_P(Conformance, SomeRanksInPoolsAndOthersNot) {
  run_ranks(GetParam(), conformance::some_ranks_in_pools_and_others_not);
}

TEST_P(Conformance, MinMaxAndMean) { run_ranks(GetParam(), conformance::min_max_and_mean); }

TEST_P(Conformance, AllRanksHoldTheSameBits) {
  run_ranks(GetParam(), conformance::all_ranks_hold_the_same_bits);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Conformance, testing::Values(1, 2, 3, 4, 7, 8, 13),
                         [](const auto& ranks) { return std::to_string(ranks.param); });

}  // namespace
}  // namespace sluice::engine
