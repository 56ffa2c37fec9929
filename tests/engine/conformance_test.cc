// The conformance suite with threads as ranks. Also, for every algorithm, the error bound of 16-bit
// sums in docs/types.md.
#include "tests/engine/conformance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "kernels/convert.h"
#include "sluice/algorithms.h"
#include "tests/engine/ranks.h"
#include "tests/engine/reduction_conformance.h"

namespace sluice::engine {
namespace {

class Conformance : public testing::TestWithParam<int> {};

TEST_P(Conformance, AllAlgorithmsAndCollectivesAreRightInPooledAndForeignMemory) {
  run_ranks(GetParam(), conformance::all_algorithms_and_collectives);
}

TEST_P(Conformance, EveryTypeAndOperationIsRight) {
  run_ranks(GetParam(), conformance::every_type_and_operation);
}

TEST_P(Conformance, EveryOperationIsRightByEveryAlgorithm) {
  run_ranks(GetParam(), conformance::every_operation_by_every_algorithm);
}

TEST_P(Conformance, IllegalOperationsAreErrors) {
  run_ranks(GetParam(), conformance::illegal_operations_are_errors);
}

TEST_P(Conformance, InputAndOutputMayBeApart) {
  run_ranks(GetParam(), conformance::input_and_output_apart);
}

TEST_P(Conformance, WrongArgumentsAreErrors) {
  run_ranks(GetParam(), conformance::wrong_arguments_are_errors);
}

TEST_P(Conformance, SomeRanksMayUsePooledMemoryAndOthersForeign) {
  run_ranks(GetParam(), conformance::some_ranks_in_pools_and_others_not);
}

TEST_P(Conformance, AllRanksHoldTheSameBits) {
  run_ranks(GetParam(), conformance::all_ranks_hold_the_same_bits);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Conformance, testing::Values(1, 2, 3, 4, 7, 8, 13),
                         [](const auto& ranks) { return std::to_string(ranks.param); });

int floor_log2(int n) { return static_cast<int>(std::log2(n)); }
int ceil_log2(int n) { return n == 1 ? 0 : floor_log2(n - 1) + 1; }

// The number of roundings on the longest path from a contribution to the sum.
int hops(std::string_view name, int ranks) {
  const std::vector<int> grid = most_square_grid(ranks);
  const int nodes = static_cast<int>(grid.size());
  if (name.starts_with("hierarchical")) {
    const std::string_view inner = name == "hierarchical" ? "halving_doubling" : name.substr(13);
    return 1 + hops(inner, nodes);
  }
  if (name == "direct" || name == "exchange") return 1;
  if (name == "ring") return ranks - 1;
  if (name == "torus") return (nodes - 1) + (grid.front() - 1);
  if (name == "double_tree") return floor_log2(ranks);
  if (name == "recursive_doubling") return floor_log2(ranks) + ((ranks & (ranks - 1)) != 0 ? 1 : 0);
  return ceil_log2(ranks);  // halving_doubling
}

float widened(std::uint16_t bits, DataType type) {
  float value = 0;
  kernels::widen(type, &value, &bits, 1);
  return value;
}

class Rounding : public testing::TestWithParam<int> {};

TEST_P(Rounding, A16BitSumStaysWithinItsBound) {
  const int ranks = GetParam();
  constexpr std::size_t kCount = 1003;
  for (const DataType type : {DataType::F16, DataType::BF16}) {
    // Signs and magnitudes are mixed, so that sums cancel and partial sums are rounded.
    std::vector<std::vector<std::uint16_t>> inputs(static_cast<std::size_t>(ranks));
    std::mt19937_64 random{static_cast<std::uint64_t>(ranks)};
    std::normal_distribution<float> normal;
    for (auto& contribution : inputs) {
      for (std::size_t i = 0; i < kCount; ++i) {
        const float value = normal(random) * std::exp2(static_cast<float>(i % 7));
        std::uint16_t bits = 0;
        (void)kernels::narrow(type, &bits, &value, 1);
        contribution.push_back(bits);
      }
    }
    const double unit = type == DataType::F16 ? std::exp2(-11) : std::exp2(-8);
    run_ranks(ranks, [&](Communicator& comm) {
      for (const Algorithm& algorithm : built_in_algorithms()) {
        if (!algorithm.supports(Collective::AllReduce)) continue;
        std::vector<std::uint16_t> data = inputs[static_cast<std::size_t>(comm.rank())];
        comm.all_reduce({data.data(), kCount, type}, {.algorithm = std::string{algorithm.name}})
            .wait();
        const double relative = std::pow(1 + unit, hops(algorithm.name, ranks)) *
                                    std::pow(1 + std::exp2(-24), ranks - 1) -
                                1;
        for (std::size_t i = 0; i < kCount; ++i) {
          double exact = 0;
          double magnitude = 0;
          for (const auto& contribution : inputs) {
            exact += widened(contribution[i], type);
            magnitude += std::abs(widened(contribution[i], type));
          }
          ASSERT_LE(std::abs(widened(data[i], type) - exact), relative * magnitude)
              << algorithm.name << " " << name(type) << " element " << i;
        }
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Rounding, testing::Values(2, 3, 4, 7, 8, 13));

}  // namespace
}  // namespace sluice::engine
