#include "cli/bench/scaling.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "sluice/status.h"

namespace sluice::cli {
namespace {

TEST(Scaling, WeakKeepsTheBatchOfARank) {
  const auto rows = scaling_rows({1, 2, 4}, {8, 16}, false);
  ASSERT_EQ(rows.size(), 6U);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(rows[i].ranks, 1 << (i % 3));
    EXPECT_EQ(rows[i].batch, i < 3 ? 8 : 16);
  }
}

TEST(Scaling, StrongKeepsTheGlobalBatch) {
  const auto rows = scaling_rows({2, 4, 8}, {16}, true);
  ASSERT_EQ(rows.size(), 3U);
  for (const ScalingRow& row : rows) EXPECT_EQ(row.batch * row.ranks, 32);
  EXPECT_THROW((void)scaling_rows({1, 3}, {16}, true), Error);
}

TEST(Scaling, EfficiencyIsAgainstTheFewestRanksOfTheSameKind) {
  std::vector<ScalingRow> weak{{1, 8, 100}, {2, 8, 180}, {1, 16, 120}, {2, 16, 240}};
  set_efficiencies(weak, false);
  EXPECT_DOUBLE_EQ(weak[0].efficiency, 1);
  EXPECT_DOUBLE_EQ(weak[1].efficiency, 0.9);
  EXPECT_DOUBLE_EQ(weak[2].efficiency, 1);
  EXPECT_DOUBLE_EQ(weak[3].efficiency, 1);
  std::vector<ScalingRow> strong{{2, 16, 100}, {4, 8, 150}};
  set_efficiencies(strong, true);
  EXPECT_DOUBLE_EQ(strong[1].efficiency, 0.75);
}

TEST(Scaling, JsonHoldsWhatIsPromised) {
  const auto json =
      scaling_json({{.ranks = 2, .batch = 8, .images_per_s = 180, .efficiency = 0.9}});
  EXPECT_EQ(json.dump(), R"([{"ranks":2,"batch":8,"images_per_s":180.0,"efficiency":0.9}])");
}

}  // namespace
}  // namespace sluice::cli
