// The load from the closed form equals the load that is counted in the schedule.
#include <gtest/gtest.h>

#include "sluice/algorithms.h"

namespace sluice::algorithms {
namespace {

// Repeats each step, so that repeated and single steps compare equal.
std::vector<StepLoad> expanded(const Load& load) {
  std::vector<StepLoad> steps;
  for (const StepLoad& step : load) {
    for (int i = 0; i < step.repeat; ++i) steps.push_back(step);
  }
  return steps;
}

void expect_equal(const Load& reported, const Load& counted, const std::string& what) {
  const auto a = expanded(reported);
  const auto b = expanded(counted);
  ASSERT_EQ(a.size(), b.size()) << what;
  constexpr double kRounding = 1e-12;  // sums of at most some thousand shares below 2
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].inside.messages, b[i].inside.messages) << what << ", step " << i + 1;
    EXPECT_EQ(a[i].between.messages, b[i].between.messages) << what << ", step " << i + 1;
    EXPECT_NEAR(a[i].inside.bytes, b[i].inside.bytes, kRounding) << what << ", step " << i + 1;
    EXPECT_NEAR(a[i].between.bytes, b[i].between.bytes, kRounding) << what << ", step " << i + 1;
    EXPECT_NEAR(a[i].reduced, b[i].reduced, kRounding) << what << ", step " << i + 1;
  }
}

void expect_reported_is_counted(const Algorithm& algorithm, const Shape& asked,
                                const Topology& topology) {
  const auto shape = complete_shape(algorithm, asked);
  if (!shape.ok()) return;
  std::string what =
      std::string{algorithm.name} + " " + std::string{name(asked.collective)} + ", nodes";
  for (const int node : topology.nodes) what += " " + std::to_string(node);
  expect_equal(load_of(algorithm, shape.value(), topology),
               count_load(build_schedule(algorithm, shape.value()), topology), what);
}

TEST(Load, FromTheClosedFormIsTheCountedLoadUpTo64Ranks) {
  for (const Algorithm& algorithm : built_in_algorithms()) {
    for (const Collective collective : algorithm.collectives) {
      for (int n = 1; n <= 64; ++n) {
        const Shape shape{.collective = collective, .ranks = n, .root = n / 2, .segments = 4};
        expect_reported_is_counted(algorithm, shape, Topology::flat(n));
        expect_reported_is_counted(algorithm, shape, {{n}});
        if (n >= 5) expect_reported_is_counted(algorithm, shape, {{3, n - 4, 1}});
      }
    }
  }
}

TEST(Load, FromTheClosedFormIsTheCountedLoadOnTheNodesOfAGrid) {
  for (const Algorithm& algorithm : built_in_algorithms()) {
    for (const std::vector<int>& grid : std::vector<std::vector<int>>{{4, 4},
                                                                      {4, 4, 4, 4},
                                                                      {8, 8, 8},
                                                                      {3, 5},
                                                                      {2, 3, 4},
                                                                      {1, 7, 2},
                                                                      {6, 10, 15},
                                                                      {16, 15, 14}}) {
      int n = 0;
      for (const int ranks : grid) n += ranks;
      for (const int segments : {1, 16}) {
        expect_reported_is_counted(algorithm, {.ranks = n, .grid = grid, .segments = segments},
                                   {grid});
      }
    }
  }
}

}  // namespace
}  // namespace sluice::algorithms
