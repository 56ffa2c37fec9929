#include "bootstrap/rendezvous/rendezvous_server.h"

#include <gtest/gtest.h>

namespace sluice::bootstrap {
namespace {

RankInfo on(const std::string& host) { return {.host = host, .node = "node of " + host}; }

TEST(Roster, SaysHowManyAreMissingOnWhichHost) {
  Roster roster{8};
  for (const Rank rank : {0, 1, 2, 3}) roster.add(rank, on("a"), 4);
  roster.add(4, on("b"), 4);
  EXPECT_EQ(roster.text(), "5 of 8 ranks joined, waiting for 3 on host b");
  EXPECT_EQ(roster.name_of(4), "rank 4 on host b");
}

TEST(Roster, NamesTheHostsWithMissingRanks) {
  Roster roster{6};
  for (const Rank rank : {0, 1}) roster.add(rank, on("a"), 3);
  roster.add(4, on("b"), 3);
  EXPECT_EQ(roster.text(), "3 of 6 ranks joined, waiting for 1 on host a, 2 on host b");
}

TEST(Roster, NamesRanksWhileAHostIsUnknown) {
  Roster roster{8};
  for (const Rank rank : {0, 1, 2, 3, 4}) roster.add(rank, on("a"), 5);
  EXPECT_EQ(roster.text(), "5 of 8 ranks joined, waiting for ranks 5, 6, 7");
}

TEST(Roster, NamesRanksWhileTheNumberOfRanksOfAHostIsUnknown) {
  Roster roster{3};
  roster.add(0, on("a"), 3);
  roster.add(1, on("b"), 0);
  EXPECT_EQ(roster.text(), "2 of 3 ranks joined, waiting for rank 2");
}

TEST(Roster, ListsAllRanksByNumberOnceComplete) {
  Roster roster{2};
  roster.add(1, on("b"), 1);
  EXPECT_FALSE(roster.complete());
  roster.add(0, on("a"), 1);
  ASSERT_TRUE(roster.complete());
  EXPECT_EQ(roster.text(), "2 of 2 ranks joined");
  EXPECT_EQ(roster.infos()[0].host, "a");
  EXPECT_EQ(roster.infos()[1].host, "b");
}

}  // namespace
}  // namespace sluice::bootstrap
