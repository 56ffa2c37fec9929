// Closed forms, written again from the papers and compared with every schedule that is built.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "sluice/algorithms.h"

namespace sluice::algorithms {
namespace {

constexpr int kMostRanks = 64;

struct Counted {
  int steps = 0;
  Fraction most_sent;
  Fraction all_sent;
};

Counted count(const char* name, const Shape& requested) {
  const Algorithm& algorithm = *find_algorithm(name).value();
  const Shape shape = complete_shape(algorithm, requested).value();
  const Proof proof = prove(algorithm, shape);
  EXPECT_TRUE(proof.proven) << name << ", " << requested.ranks << " ranks: " << proof.reason;
  Counted counted{proof.steps, proof.bytes_factor, 0};
  for (const Program& program : build_schedule(algorithm, shape).programs) {
    counted.all_sent = counted.all_sent + sent_share(program);
  }
  return counted;
}

int floor_log2(int n) { return static_cast<int>(std::floor(std::log2(n))); }
int ceil_log2(int n) { return static_cast<int>(std::ceil(std::log2(n))); }

TEST(ClosedForm, OfRingMatchesItsSchedules) {
  for (int n = 1; n <= kMostRanks; ++n) {
    const Counted all = count("ring", {.ranks = n});
    EXPECT_EQ(all.steps, 2 * (n - 1));
    EXPECT_EQ(all.most_sent, Fraction(2 * (n - 1), n));
    for (const Collective half : {Collective::ReduceScatter, Collective::AllGather}) {
      const Counted counted = count("ring", {.collective = half, .ranks = n});
      EXPECT_EQ(counted.steps, n - 1);
      EXPECT_EQ(counted.most_sent, Fraction(n - 1, n));
    }
  }
}

TEST(ClosedForm, OfRecursiveDoublingMatchesItsSchedules) {
  for (int n = 1; n <= kMostRanks; ++n) {
    const Counted counted = count("recursive_doubling", {.ranks = n});
    const bool power = (n & (n - 1)) == 0;
    EXPECT_EQ(counted.steps, floor_log2(n) + (power ? 0 : 2)) << n;
    EXPECT_EQ(counted.most_sent, Fraction(floor_log2(n) + (power ? 0 : 1))) << n;
  }
}

TEST(ClosedForm, OfHalvingDoublingMatchesItsSchedulesForEveryRankCount) {
  for (const char* name : {"halving_doubling", "halving_doubling:far"}) {
    for (int n = 1; n <= kMostRanks; ++n) {
      const Counted counted = count(name, {.ranks = n});
      EXPECT_EQ(counted.steps, 2 * ceil_log2(n)) << n;
      EXPECT_EQ(counted.most_sent, Fraction(2 * (n - 1), n)) << n;
      EXPECT_EQ(counted.all_sent, Fraction(2 * (n - 1))) << n;
      for (const Collective half : {Collective::ReduceScatter, Collective::AllGather}) {
        const Counted of_half = count(name, {.collective = half, .ranks = n});
        EXPECT_EQ(of_half.steps, ceil_log2(n)) << n;
        EXPECT_EQ(of_half.most_sent, Fraction(n - 1, n)) << n;
      }
    }
  }
}

TEST(ClosedForm, OfTorusMatchesItsSchedules) {
  for (int x = 1; x <= 8; ++x) {
    for (int y = 1; y <= 8; ++y) {
      const int n = x * y;
      const Counted counted =
          count("torus", {.ranks = n, .grid = std::vector<int>(static_cast<std::size_t>(y), x)});
      EXPECT_EQ(counted.steps, 2 * (x + y - 2));
      EXPECT_EQ(counted.most_sent, Fraction(2 * (n - 1), n));
    }
  }
  for (int n = 1; n <= kMostRanks; ++n) {
    EXPECT_EQ(count("torus", {.ranks = n}).most_sent, Fraction(2 * (n - 1), n)) << n;
  }
}

TEST(ClosedForm, OfDoubleTreeMatchesItsSchedules) {
  for (int n = 1; n <= kMostRanks; ++n) {
    for (const int segments : {1, 2, 8}) {
      const Counted counted = count("double_tree", {.ranks = n, .segments = segments});
      EXPECT_EQ(counted.steps, n == 1 ? 0 : 2 * floor_log2(n) + segments - 1) << n;
      EXPECT_LE(counted.most_sent, Fraction(2)) << n;
      EXPECT_EQ(counted.all_sent, Fraction(2 * (n - 1))) << "each tree has n-1 edges, both ways";
      for (const Collective rooted : {Collective::Broadcast, Collective::Reduce}) {
        for (const Rank root : {0, n / 2, n - 1}) {
          const Counted one_way =
              count("double_tree",
                    {.collective = rooted, .ranks = n, .root = root, .segments = segments});
          EXPECT_EQ(one_way.steps, n == 1 ? 0 : floor_log2(n - 1) + segments) << n;
          EXPECT_EQ(one_way.most_sent, Fraction(n == 1 ? 0 : 1)) << n;
          EXPECT_EQ(one_way.all_sent, Fraction(n - 1)) << n;
        }
      }
    }
  }
}

TEST(ClosedForm, OfDirectMatchesItsSchedules) {
  for (int n = 1; n <= kMostRanks; ++n) {
    const int steps = n == 1 ? 0 : 2;
    for (const Collective collective :
         {Collective::AllReduce, Collective::Broadcast, Collective::Reduce}) {
      const Counted counted =
          count("direct", {.collective = collective, .ranks = n, .root = n / 3});
      EXPECT_EQ(counted.steps, steps);
      EXPECT_LE(counted.most_sent, Fraction(2 * (n - 1), n));
    }
    EXPECT_EQ(count("direct", {.ranks = n}).most_sent, Fraction(2 * (n - 1), n));
    const Counted half = count("direct", {.collective = Collective::AllGather, .ranks = n});
    EXPECT_EQ(half.steps, n == 1 ? 0 : 1);
    EXPECT_EQ(half.most_sent, Fraction(n - 1, n));
  }
}

// It has 2 steps more than the inner algorithm. A rank of a node with k ranks sends 2(1 - 1/(Nk));
// all ranks together always send 2(n-1).
void expect_hierarchical(const std::vector<int>& grid) {
  int n = 0;
  int most = 0;
  for (const int ranks : grid) {
    n += ranks;
    most = std::max(most, ranks);
  }
  const int nodes = static_cast<int>(grid.size());
  const int inside = most > 1 ? 2 : 0;
  for (const auto& [name, inner_steps] : {std::pair{"hierarchical", 2 * ceil_log2(nodes)},
                                          std::pair{"hierarchical:ring", 2 * (nodes - 1)},
                                          std::pair{"hierarchical:direct", nodes == 1 ? 0 : 2}}) {
    const Counted counted = count(name, {.ranks = n, .grid = grid});
    EXPECT_EQ(counted.steps, inside + inner_steps) << name;
    EXPECT_EQ(counted.most_sent, Fraction(2 * (nodes * most - 1), nodes * most)) << name;
    EXPECT_EQ(counted.all_sent, Fraction(2 * (n - 1))) << name;
  }
  for (const char* name : {"hierarchical:recursive_doubling", "hierarchical:torus",
                           "hierarchical:double_tree", "hierarchical:halving_doubling:far"}) {
    (void)count(name, {.ranks = n, .grid = grid, .segments = 2});
  }
}

TEST(ClosedForm, OfHierarchicalMatchesItsSchedulesOnEveryGridUpTo16x16) {
  for (int nodes = 1; nodes <= 16; ++nodes) {
    for (int ranks = 1; ranks <= 16; ++ranks) {
      expect_hierarchical(std::vector<int>(static_cast<std::size_t>(nodes), ranks));
    }
  }
}

TEST(ClosedForm, OfHierarchicalMatchesItsSchedulesOnRaggedGrids) {
  const std::vector<std::vector<int>> grids = {
      {3, 5},       {5, 3},          {1, 2},      {2, 1},          {1, 7},
      {7, 1, 1},    {2, 3, 4},       {4, 3, 2},   {1, 1, 2},       {5, 5, 3},
      {8, 8, 8, 5}, {4, 4, 4, 1},    {13, 7, 11}, {1, 16},         {16, 15, 14},
      {6, 10, 15},  {2, 2, 3, 3, 5}, {12, 1, 12}, {9, 8, 7, 6, 5}, {3, 1, 4, 1, 5, 9, 2, 6},
      {8, 7},       {1, 1, 1, 2},    {10, 4, 4},  {5, 6, 7, 8}};
  ASSERT_GE(grids.size(), 20U);
  for (const auto& grid : grids) expect_hierarchical(grid);
}

}  // namespace
}  // namespace sluice::algorithms
