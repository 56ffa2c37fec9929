// Properties of single algorithms that closed forms do not show.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <set>
#include <vector>

#include "sluice/algorithms.h"

namespace sluice::algorithms {
namespace {

Schedule build(const char* name, Shape shape) {
  const Algorithm& algorithm = *find_algorithm(name).value();
  return build_schedule(algorithm, complete_shape(algorithm, std::move(shape)).value());
}

TEST(Ring, SendsToTheNextRankOnly) {
  const Schedule schedule = build("ring", {.ranks = 7});
  for (Rank rank = 0; rank < 7; ++rank) {
    const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
    for (int step = 0; step < program.steps(); ++step) {
      ASSERT_EQ(program.sends(step).size(), 1U);
      EXPECT_EQ(program.sends(step)[0].peer, (rank + 1) % 7);
    }
  }
}

TEST(Ring, BuildsAProgramOf4096RanksFastAndSmall) {
  const Algorithm& ring = *find_algorithm("ring").value();
  const std::size_t before = mallinfo2().uordblks + mallinfo2().hblkhd;
  const auto begin = std::chrono::steady_clock::now();
  const Program program = ring.program({.ranks = 4096}, 1234);
  const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
  const std::size_t bytes = mallinfo2().uordblks + mallinfo2().hblkhd - before;
  EXPECT_EQ(program.steps(), 2 * 4095);
  EXPECT_LT(took.count(), 50);
  EXPECT_LT(bytes, std::size_t{16} << 20U);
}

TEST(DoubleTree, NoRankIsInnerInBothTrees) {
  for (int n = 1; n <= 64; ++n) {
    const Schedule schedule = build("double_tree", {.ranks = n});
    for (Rank rank = 0; rank < n; ++rank) {
      // An inner rank of a tree reduces a chunk of the half that the tree carries: chunk 0 or 1.
      std::set<int> inner;
      const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
      for (int step = 0; step < program.steps(); ++step) {
        for (const Write& receive : program.receives(step)) {
          if (receive.combine == Combine::Reduce) inner.insert(receive.range.first);
        }
      }
      EXPECT_LE(inner.size(), 1U) << n << " ranks, rank " << rank;
    }
  }
}

TEST(DoubleTree, ReceivesAtMostTwoBuffers) {
  for (int n = 2; n <= 64; ++n) {
    const Schedule schedule = build("double_tree", {.ranks = n, .segments = 4});
    for (const Program& program : schedule.programs) {
      std::int64_t received = 0;
      for (int step = 0; step < program.steps(); ++step) {
        for (const Write& receive : program.receives(step)) {
          for (const Rank source : program.sources(receive)) received += source == kOwn ? 0 : 1;
        }
      }
      EXPECT_LE(received, 2 * program.chunking().chunks());
    }
  }
}

// The cost of a tree depends on the messages that leave a node or a rack.
TEST(DoubleTree, StaysAmongNeighbours) {
  struct Case {
    int ranks;
    int together;
    int most_buffers;  // sent to other nodes
  };
  for (const Case& each : {Case{64, 4, 3}, Case{256, 4, 3}, Case{256, 32, 3}, Case{100, 10, 6}}) {
    const Schedule schedule = build("double_tree", {.ranks = each.ranks});
    std::vector<int> halves(static_cast<std::size_t>(each.ranks / each.together), 0);
    for (Rank rank = 0; rank < each.ranks; ++rank) {
      const Program& program = schedule.programs[static_cast<std::size_t>(rank)];
      for (int step = 0; step < program.steps(); ++step) {
        for (const Send& send : program.sends(step)) {
          if (send.peer / each.together != rank / each.together)
            ++halves[static_cast<std::size_t>(rank / each.together)];
        }
      }
    }
    EXPECT_LE(*std::max_element(halves.begin(), halves.end()), 2 * each.most_buffers)
        << each.ranks << " ranks, " << each.together << " together";
  }
}

// On a thin tree the cost depends on the distance of the longest message.
TEST(HalvingDoubling, NearFirstSendsHalfToTheNeighbourAndFarFirstAcross) {
  const Schedule near = build("halving_doubling", {.ranks = 8});
  const Schedule far = build("halving_doubling:far", {.ranks = 8});
  EXPECT_EQ(near.programs[2].sends(0)[0].peer, 3);
  EXPECT_EQ(far.programs[2].sends(0)[0].peer, 6);
  EXPECT_EQ(near.programs[2].sends(0)[0].range.count, 4);
  EXPECT_EQ(far.programs[2].sends(0)[0].range.count, 4);
}

TEST(HalvingDoubling, OtherCountsFollowTheCirculantPattern) {
  // n = 5: skips 3, 2, 1, as in the paper's example.
  const Schedule schedule = build("halving_doubling", {.ranks = 5});
  const Program& rank_0 = schedule.programs[0];
  EXPECT_EQ(rank_0.sends(0)[0], (Send{3, {.first = 3, .count = 2}}));
  EXPECT_EQ(rank_0.sends(1)[0], (Send{2, {.first = 2, .count = 1}}));
  EXPECT_EQ(rank_0.sends(2)[0], (Send{1, {.first = 1, .count = 1}}));
}

TEST(Direct, AddsInRankOrderAtEveryRank) {
  const Schedule schedule = build("direct", {.ranks = 4});
  EXPECT_TRUE(schedule.ordered);
  const Program& rank_2 = schedule.programs[2];
  const auto sources = rank_2.sources(rank_2.receives(0)[0]);
  EXPECT_EQ(std::vector<Rank>(sources.begin(), sources.end()), (std::vector<Rank>{0, 1, kOwn, 3}));
}

TEST(Hierarchical, RaggedNodesCutSlicesWhereAnyNodeCuts) {
  const Schedule schedule = build("hierarchical:ring", {.ranks = 5, .grid = {2, 3}});
  const Chunking& chunking = schedule.programs[0].chunking();
  // Slices of 2, 1, 1 and 2 sixths, each cut into the two chunks of the ring.
  ASSERT_EQ(chunking.chunks(), 8);
  EXPECT_EQ(chunking.total_weight(), 12);
  EXPECT_EQ(chunking.weight(0), 2);
  EXPECT_EQ(chunking.weight(2), 1);
  EXPECT_EQ(chunking.weight(4), 1);
  EXPECT_EQ(chunking.weight(6), 2);
}

TEST(MostSquareGrid, HasSidesAsEqualAsPossible) {
  EXPECT_EQ(most_square_grid(12), (std::vector{4, 4, 4}));
  EXPECT_EQ(most_square_grid(16), (std::vector{4, 4, 4, 4}));
  EXPECT_EQ(most_square_grid(13), std::vector{13});
  EXPECT_EQ(most_square_grid(1), std::vector{1});
}

TEST(CompleteShape, RejectsAnUnsuitableShape) {
  const auto why = [](const char* name, Shape shape) {
    return complete_shape(*find_algorithm(name).value(), std::move(shape)).status().message();
  };
  EXPECT_EQ(why("torus", {.ranks = 8, .grid = {3, 5}}),
            "torus needs rows of equal length, not 3+5: use hierarchical for ragged nodes");
  EXPECT_EQ(why("torus", {.ranks = 9, .grid = {4, 4}}),
            "grid 4+4 has 8 ranks, not 9: give a grid of that many ranks");
  EXPECT_EQ(why("ring", {.ranks = 0}), "ranks must be 1 or more, not 0");
  EXPECT_EQ(why("ring", {.collective = Collective::Broadcast, .ranks = 2}),
            "ring does not support broadcast: it supports all_reduce, reduce_scatter, all_gather");
  EXPECT_EQ(why("direct", {.collective = Collective::Reduce, .ranks = 2, .root = 2}),
            "root 2 is not one of 2 ranks");
  EXPECT_NE(why("hierarchical", {.ranks = 590, .grid = {97, 89, 83, 79, 73, 71, 67, 31}}), "");
}

TEST(FindAlgorithm, SuggestsTheNearestName) {
  EXPECT_EQ(find_algorithm("rign").status().message(),
            "there is no algorithm \"rign\": did you mean ring?");
  EXPECT_NE(find_algorithm("qqqqqqqqqqqqqqq").status().message().find("choose from ring, "),
            std::string::npos);
}

// A schedule that differs from its closed form is rejected even if it computes the right sum.
TEST(Prove, ComparesAnAlgorithmWithItsClosedForm) {
  Algorithm slow = *find_algorithm("ring").value();
  slow.steps = [](const Shape&) { return 5; };
  EXPECT_EQ(prove(slow, {.ranks = 4}).reason, "it has 6 steps, but the closed form of ring says 5");
  Algorithm wasteful = *find_algorithm("ring").value();
  wasteful.sent = [](const Shape&, Rank) { return Fraction{1}; };
  EXPECT_EQ(prove(wasteful, {.ranks = 4}).reason,
            "rank 0 sends 3/2 of the buffer, but the closed form of ring says 1");
}

}  // namespace
}  // namespace sluice::algorithms
