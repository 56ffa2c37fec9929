#include "sluice/analysis/select.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace sluice::algorithms {
namespace {

constexpr CostConstants kLinks{
    .inside = {1e-6, 40e9}, .between = {10e-6, 5e9, 0, 2e-6}, .reduce_s_per_byte = 0};

TEST(Select, PredictsTheTimeOfThePaperForARing) {
  // 2(n-1)(alpha + S / (n beta)), and with gamma (n-1)/n S for the reduction.
  constexpr int kRanks = 16;
  constexpr double kBytes = 1 << 20;
  CostConstants links = kLinks;
  links.reduce_s_per_byte = 1e-10;
  const Algorithm& ring = *find_algorithm("ring").value();
  const Load load = load_of(ring, {.ranks = kRanks}, Topology::flat(kRanks));
  EXPECT_NEAR(predict_seconds(load, kBytes, links),
              2 * 15 * (10e-6 + kBytes / 16 / 5e9) + kBytes * 15 / 16 * 1e-10, 1e-12);
}

TEST(Select, UsesRecursiveDoublingForSmallMessagesAndABandwidthOptimalAlgorithmForLargeOnes) {
  const Selector selector{Collective::AllReduce, Topology::flat(64), kLinks};
  EXPECT_EQ(selector.choose(4).algorithm->name, "recursive_doubling");
  const Candidate large = selector.choose(std::int64_t{1} << 30);
  EXPECT_EQ(large.algorithm->sent(large.shape, 0), Fraction(2 * 63, 64));
}

TEST(Select, SortsCandidatesAndListsEachAlgorithmOnce) {
  const Selector selector{Collective::AllReduce, {{4, 4, 4, 4}}, kLinks};
  const auto candidates = selector.candidates(1 << 20);
  EXPECT_EQ(candidates.size(), built_in_algorithms().size());
  EXPECT_TRUE(std::is_sorted(candidates.begin(), candidates.end(),
                             [](const auto& a, const auto& b) { return a.seconds < b.seconds; }));
  EXPECT_EQ(candidates.front().algorithm, selector.choose(1 << 20).algorithm);
}

TEST(Select, PrefersHierarchicalWhereRanksShareALink) {
  // 8 ranks share a slow link: whole-vector doubling puts 8 buffers on it in every outer step.
  const Selector selector{Collective::AllReduce, {std::vector<int>(8, 8)}, kLinks};
  const auto candidates = selector.candidates(1 << 16);
  const auto index_of = [&](std::string_view name) {
    return std::find_if(candidates.begin(), candidates.end(),
                        [&](const Candidate& c) { return c.algorithm->name == name; }) -
           candidates.begin();
  };
  EXPECT_LT(index_of("hierarchical"), index_of("recursive_doubling"));
  EXPECT_LT(index_of("hierarchical"), index_of("ring"));
  EXPECT_LT(index_of("halving_doubling"), index_of("halving_doubling:far"));
}

TEST(Select, FindsTheSizesWhereTheChoiceChanges) {
  const Selector selector{Collective::AllReduce, {std::vector<int>(16, 4)}, kLinks};
  const auto crossovers = selector.crossovers(4, std::int64_t{1} << 32);
  ASSERT_GE(crossovers.size(), 2U);
  EXPECT_EQ(crossovers.front().bytes, 4);
  for (std::size_t i = 0; i < crossovers.size(); ++i) {
    EXPECT_EQ(selector.choose(crossovers[i].bytes).algorithm, crossovers[i].candidate.algorithm);
    if (i > 0) {
      EXPECT_EQ(selector.choose(crossovers[i].bytes - 1).algorithm,
                crossovers[i - 1].candidate.algorithm);
    }
  }
}

TEST(Select, HasACandidateForEveryCollectiveAndRankCount) {
  for (const Collective collective : kCollectives) {
    for (const int n : {1, 2, 3, 7, 13}) {
      const Selector selector{collective, Topology::flat(n), kLinks, {.root = n - 1}};
      const Candidate choice = selector.choose(1000);
      ASSERT_NE(choice.algorithm, nullptr);
      EXPECT_TRUE(prove(*choice.algorithm, choice.shape).proven);
    }
  }
}

TEST(Select, HasATorusOnARaggedTopology) {
  const Selector selector{Collective::AllReduce, {{3, 5, 4}}, kLinks};
  for (const Candidate& candidate : selector.candidates(1 << 20)) {
    const bool torus = candidate.algorithm->name == "torus";
    const bool uses_nodes = candidate.algorithm->name.starts_with("hierarchical");
    if (torus) {
      EXPECT_EQ(candidate.shape.grid, (std::vector{4, 4, 4}));
    } else if (uses_nodes) {
      EXPECT_EQ(candidate.shape.grid, (std::vector{3, 5, 4}));
    }
  }
}

}  // namespace
}  // namespace sluice::algorithms
