#include "engine/select/choices.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "engine/select/constants.h"

namespace sluice::engine {
namespace {

std::string_view chosen(Choices& choices, std::int64_t bytes, std::string_view asked = "",
                        Collective collective = Collective::AllReduce) {
  return choices.choose(collective, bytes, 0, asked).value()->algorithm->name;
}

// Ring has a low latency and a low bandwidth, direct has both high. Exchange takes at most 100
// bytes.
CostConstants example_constants() {
  CostConstants constants;
  constants.measured = {
      {.algorithm = "exchange",
       .inside = {.latency_s = 1e-9, .bandwidth_bytes_per_s = 1e9},
       .most_bytes = 100},
      {.algorithm = "ring", .inside = {.latency_s = 1e-6, .bandwidth_bytes_per_s = 1e9}},
      {.algorithm = "direct", .inside = {.latency_s = 1e-4, .bandwidth_bytes_per_s = 1e12}}};
  return constants;
}

RankOrder one_node(int ranks) { return {std::vector<int>(static_cast<std::size_t>(ranks), 0), {}}; }

TEST(Choices, AreTheCheapestAlgorithmByTheConstants) {
  Choices choices{one_node(2), 0, example_constants(), {}};
  EXPECT_EQ(chosen(choices, 0), "exchange");
  EXPECT_EQ(chosen(choices, 100), "exchange");
  EXPECT_EQ(chosen(choices, 101), "ring");
  EXPECT_EQ(chosen(choices, 1 << 20), "direct");
  EXPECT_EQ(chosen(choices, 100, "", Collective::Broadcast), "direct")
      << "the others have no broadcast";
}

TEST(Choices, AnOverrideAppliesToItsSizesAndTheOptionOfACallComesFirst) {
  Choices choices{one_node(3), 1, example_constants(),
                  parse_overrides("torus@1K-1M,recursive_doubling@-8").value()};
  EXPECT_EQ(chosen(choices, 7), "recursive_doubling");
  EXPECT_EQ(chosen(choices, 8), "exchange");
  EXPECT_EQ(chosen(choices, 1024), "torus");
  EXPECT_EQ(chosen(choices, (1 << 20) - 1), "torus");
  EXPECT_EQ(chosen(choices, 1 << 20), "direct");
  EXPECT_EQ(chosen(choices, 1024, "ring"), "ring");
  EXPECT_EQ(chosen(choices, 1024, "", Collective::ReduceScatter), "ring")
      << "a torus has no reduce_scatter";
}

TEST(Choices, EqualShapesShareOneChoice) {
  Choices choices{one_node(5), 2, example_constants(), {}};
  const Choice* const first = choices.choose(Collective::AllReduce, 1 << 20, 0, "").value();
  EXPECT_EQ(choices.choose(Collective::AllReduce, 1 << 21, 0, "").value(), first);
  EXPECT_EQ(choices.choose(Collective::AllReduce, 4, 0, "direct").value(), first);
}

TEST(Overrides, AnErrorNamesTheWrongPart) {
  const auto error = [](const char* text) { return parse_overrides(text).status().message(); };
  EXPECT_EQ(error("rign"), "there is no algorithm \"rign\": did you mean ring?");
  EXPECT_EQ(error("ring@4K"), "\"4K\" is not a range of sizes: write 4K-1M, -4K or 1M-");
  EXPECT_EQ(error("ring@1M-4K"),
            "the range \"1M-4K\" is empty: the first size must be smaller than the second");
  EXPECT_FALSE(parse_overrides("ring@4Q-").ok());
  EXPECT_TRUE(parse_overrides("").value().empty());
  EXPECT_EQ(parse_overrides("halving_doubling:far@-4K,ring").value().size(), 2U);
}

TEST(Constants, AreSavedInTheCacheFolderAndReadBack) {
  const std::string folder = testing::TempDir() + "sluice-constants";
  std::filesystem::remove_all(folder);
  const auto path = constants_path(bootstrap::Environment{{{"SLUICE_CACHE", folder}}}, 4);
  EXPECT_FALSE(load_constants(path).has_value());
  save_constants(path, typical_constants(), 4);
  const auto read = load_constants(path);
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->measured.size(), measured_algorithms().size());
  EXPECT_EQ(read->measured_for("exchange")->most_bytes, 4096);
  EXPECT_TRUE(constants_path(bootstrap::Environment{{}}, 4).empty());
  EXPECT_NE(constants_path(bootstrap::Environment{{{"HOME", "/h"}}}, 4)
                .string()
                .find("/h/.cache/sluice/"),
            std::string::npos);
  save_constants("/proc/nowhere/file", typical_constants(), 4);  // a failed write is no error
  std::filesystem::remove_all(folder);
}

TEST(Constants, ManyRanksUseTheFileOfAFew) {
  const std::string folder = testing::TempDir() + "sluice-few-constants";
  std::filesystem::remove_all(folder);
  const bootstrap::Environment environment{{{"SLUICE_CACHE", folder}}};
  EXPECT_EQ(constants_path(environment, 9), constants_path(environment, kMostMeasuredRanks));
  EXPECT_EQ(constants_path(environment, 4096), constants_path(environment, kMostMeasuredRanks));
  EXPECT_NE(constants_path(environment, 7), constants_path(environment, kMostMeasuredRanks));
  EXPECT_FALSE(kept_constants(environment, 64).has_value());
  save_constants(constants_path(environment, 64), typical_constants(), kMostMeasuredRanks);
  EXPECT_TRUE(kept_constants(environment, 64).has_value());
  EXPECT_FALSE(kept_constants(environment, 7).has_value());
  std::filesystem::remove_all(folder);
}

TEST(Constants, OfMoreRanksThanCoresGrowWithTheRanksOfACore) {
  const CostConstants measured = typical_constants();
  const auto ratio = [&](int ranks, int cores) {
    const Link before = measured.measured_for("ring")->inside;
    const Link after = extrapolated(measured, ranks, cores).measured_for("ring")->inside;
    EXPECT_DOUBLE_EQ(after.latency_s / before.latency_s,
                     before.bandwidth_bytes_per_s / after.bandwidth_bytes_per_s);
    return after.latency_s / before.latency_s;
  };
  EXPECT_DOUBLE_EQ(ratio(3, 2), 1);    // measured with 3 ranks
  EXPECT_DOUBLE_EQ(ratio(8, 2), 1);    // measured with 8 ranks, 4 on a core
  EXPECT_DOUBLE_EQ(ratio(64, 2), 8);   // 32 on a core
  EXPECT_DOUBLE_EQ(ratio(64, 64), 1);  // each has a core, as the 8 had
  EXPECT_DOUBLE_EQ(ratio(64, 16), 4);  // 4 on a core, and the 8 had a core each
  EXPECT_DOUBLE_EQ(ratio(100, 1), 12.5);
}

using Ranks = std::vector<Rank>;

TEST(RankOrder, RanksThatAreNumberedNodeByNodeKeepTheirNumbers) {
  const RankOrder order{{0, 0, 1, 1, 1}, {}};
  EXPECT_EQ(order.ranks(), (Ranks{0, 1, 2, 3, 4}));
  EXPECT_EQ(order.topology(Collective::AllReduce).nodes, (std::vector{2, 3}));
  EXPECT_FALSE(order.applies_to(*find_algorithm("ring").value(), Collective::AllReduce));
}

TEST(RankOrder, RanksInRoundRobinAreOrderedNodeByNode) {
  const RankOrder order{{0, 1, 2, 0, 1, 2, 0}, {}};
  EXPECT_EQ(order.ranks(), (Ranks{0, 3, 6, 1, 4, 2, 5}));
  EXPECT_EQ(order.topology(Collective::AllReduce).nodes, (std::vector{3, 2, 2}));
  EXPECT_EQ(order.position_of(1), 3);
  EXPECT_TRUE(order.applies_to(*find_algorithm("ring").value(), Collective::AllReduce));
}

TEST(RankOrder, NodesOfOneSwitchAreNextToEachOther) {
  const RankOrder order{{0, 1, 2, 3}, {0, 1, 0, 1}};
  EXPECT_EQ(order.ranks(), (Ranks{0, 2, 1, 3}));
}

TEST(RankOrder, RanksKeepTheirNumbersWhereTheNumbersMatter) {
  const RankOrder order{{0, 1, 0, 1}, {}};
  EXPECT_FALSE(order.applies_to(*find_algorithm("direct").value(), Collective::AllReduce));
  EXPECT_FALSE(order.applies_to(*find_algorithm("ring").value(), Collective::ReduceScatter));
  EXPECT_EQ(order.topology(Collective::AllGather).nodes, (std::vector{1, 1, 1, 1}));
}

TEST(RankOrder, APartOfTheRanksKeepsTheOrder) {
  const RankOrder order{{0, 1, 2, 0, 1, 2}, {1, 0, 0}};
  EXPECT_EQ(order.ranks(), (Ranks{1, 4, 2, 5, 0, 3}));
  // Members 5, 3, 1 become 0, 1, 2.
  EXPECT_EQ(order.part({5, 3, 1}).ranks(), (Ranks{2, 0, 1}));
}

}  // namespace
}  // namespace sluice::engine
