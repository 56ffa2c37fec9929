#include "engine/select/rank_order.h"

#include <gtest/gtest.h>

namespace sluice::engine {
namespace {

using Ranks = std::vector<Rank>;

TEST(RankOrder, RanksThatSitNodeByNodeKeepTheirNumbers) {
  const RankOrder order{{0, 0, 1, 1, 1}, {}};
  EXPECT_EQ(order.ranks(), (Ranks{0, 1, 2, 3, 4}));
  EXPECT_EQ(order.topology(Collective::AllReduce).nodes, (std::vector{2, 3}));
  EXPECT_FALSE(order.holds_for(*find_algorithm("ring").value(), Collective::AllReduce));
}

TEST(RankOrder, RanksDealtOutInTurnAreCountedNodeByNode) {
  const RankOrder order{{0, 1, 2, 0, 1, 2, 0}, {}};
  EXPECT_EQ(order.ranks(), (Ranks{0, 3, 6, 1, 4, 2, 5}));
  EXPECT_EQ(order.topology(Collective::AllReduce).nodes, (std::vector{3, 2, 2}));
  EXPECT_EQ(order.place_of(1), 3);
  EXPECT_TRUE(order.holds_for(*find_algorithm("ring").value(), Collective::AllReduce));
}

TEST(RankOrder, NodesBehindOneSwitchComeTogether) {
  const RankOrder order{{0, 1, 2, 3}, {0, 1, 0, 1}};
  EXPECT_EQ(order.ranks(), (Ranks{0, 2, 1, 3}));
}

TEST(RankOrder, WhereNumbersMatterTheyAreKept) {
  const RankOrder order{{0, 1, 0, 1}, {}};
  EXPECT_FALSE(order.holds_for(*find_algorithm("direct").value(), Collective::AllReduce));
  EXPECT_FALSE(order.holds_for(*find_algorithm("ring").value(), Collective::ReduceScatter));
  EXPECT_EQ(order.topology(Collective::AllGather).nodes, (std::vector{1, 1, 1, 1}));
}

TEST(RankOrder, APartKeepsTheOrderOfTheWhole) {
  const RankOrder order{{0, 1, 2, 0, 1, 2}, {1, 0, 0}};
  EXPECT_EQ(order.ranks(), (Ranks{1, 4, 2, 5, 0, 3}));
  // Members 5, 3, 1 become 0, 1, 2.
  EXPECT_EQ(order.part({5, 3, 1}).ranks(), (Ranks{2, 0, 1}));
}

}  // namespace
}  // namespace sluice::engine
