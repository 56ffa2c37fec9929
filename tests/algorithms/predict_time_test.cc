// Times that are easy to compute by hand.
#include <gtest/gtest.h>

#include "sluice/algorithms.h"

namespace sluice::algorithms {
namespace {

constexpr double kAlpha = 10e-6;
constexpr double kBeta = 1e9;
constexpr double kInsideAlpha = 2e-6;
constexpr double kInsideBeta = 10e9;
constexpr double kSizes[] = {4, 1e3, 1e6, 64e6, 1e9};
constexpr double kClose = 1e-9;  // sums round

CostConstants links() {
  return {.inside = {kInsideAlpha, kInsideBeta}, .between = {kAlpha, kBeta}};
}

double seconds(const CostConstants& constants, const Topology& topology, std::string_view name,
               double bytes, int segments = 1) {
  int ranks = 0;
  for (const int node : topology.nodes) ranks += node;
  const Algorithm& algorithm = *find_algorithm(name).value();
  const bool grid = topology.nodes.size() > 1 && algorithm.uses_grid;
  const Shape shape = complete_shape(algorithm, {.ranks = ranks,
                                                 .grid = grid ? topology.nodes : std::vector<int>{},
                                                 .segments = segments})
                          .value();
  return predict_time(algorithm, shape, topology, constants).at(bytes);
}

void expect_near(double actual, double expected) {
  EXPECT_NEAR(actual, expected, kClose * expected);
}

Topology nodes_of(int nodes, int ranks) {
  return {std::vector<int>(static_cast<std::size_t>(nodes), ranks)};
}

TEST(PredictTime, ARingTakesTheTimeOfThePaper) {
  CostConstants constants = links();
  constants.reduce_s_per_byte = 1e-10;
  for (const int n : {1, 2, 3, 7, 13, 64}) {
    for (const double bytes : kSizes) {
      expect_near(seconds(constants, Topology::flat(n), "ring", bytes),
                  2 * (n - 1) * (kAlpha + bytes / n / kBeta) + (n - 1) * bytes / n * 1e-10);
    }
  }
}

TEST(PredictTime, HalvingDoublingTakesTheTimeOfThePaper) {
  for (const char* name : {"halving_doubling", "halving_doubling:far"}) {
    for (const int n : {2, 16, 64}) {
      for (const double bytes : kSizes) {
        double expected = 0;
        for (double part = 0.5; part * n >= 1; part /= 2)
          expected += 2 * (kAlpha + part * bytes / kBeta);
        expect_near(seconds(links(), Topology::flat(n), name, bytes), expected);
      }
    }
  }
}

TEST(PredictTime, AChunkOfARingPaysTheMeanHopUntilTheSlowestLinkIsBusy) {
  // 4 nodes of 4 ranks: one hop of four leaves the node.
  const double hops = 2 * 15;
  expect_near(seconds(links(), nodes_of(4, 4), "ring", 0),
              hops * (0.75 * kInsideAlpha + 0.25 * kAlpha));
  const double mean_latency = 0.75 * kInsideAlpha + 0.25 * kAlpha;
  expect_near(seconds(links(), nodes_of(4, 4), "ring", 16e9),
              hops * 1e9 / kBeta + 2 * mean_latency);
}

TEST(PredictTime, AStreamUsesOneOfSeveralNics) {
  CostConstants constants = links();
  constants.network.nics = 4;
  const double striped = seconds(constants, nodes_of(2, 4), "ring", 1e9);
  constants.network.striped = false;
  const double own = seconds(constants, nodes_of(2, 4), "ring", 1e9);
  EXPECT_NEAR(own / striped, 4, 0.01);
  // In a hierarchical algorithm all ranks use their own NIC, so all NICs are busy.
  expect_near(seconds(constants, nodes_of(2, 4), "hierarchical:ring", 1e9),
              2 * (kInsideAlpha + 0.75e9 / kInsideBeta) + 2 * (kAlpha + 0.5e9 / kBeta));
}

TEST(PredictTime, MessagesShareThinUplinks) {
  // Two groups of 4 nodes whose uplinks carry as much as one node. In one step of the reduction
  // and one of the gathering, 4 messages go up at the same time.
  CostConstants constants = links();
  constants.network.levels = {{.nodes = 4, .oversubscription = 4, .latency_s = 1e-6}};
  const double bytes = 8e6;
  const auto expected = [&](double part_that_crosses) {
    double sum = 2 * (2e-6 + 3 * part_that_crosses * bytes / kBeta);
    for (const double part : {0.5, 0.25, 0.125}) sum += 2 * (kAlpha + part * bytes / kBeta);
    return sum;
  };
  expect_near(seconds(constants, Topology::flat(8), "halving_doubling:far", bytes), expected(0.5));
  expect_near(seconds(constants, Topology::flat(8), "halving_doubling", bytes), expected(0.125));
}

TEST(PredictTime, AllMessagesOfANodeShareItsHostMemoryAndItsBridge) {
  CostConstants constants = links();
  constants.network.staging_bytes_per_s = 2e9;
  // 4 ranks send 3 slices each, all through the memory.
  expect_near(seconds(constants, {{4}}, "direct", 1e9), 2 * (kInsideAlpha + 3e9 / 2e9));
  constants.network.staging_bytes_per_s = 0;
  constants.network.bridge_bytes_per_s = 1e9;
  expect_near(seconds(constants, {{4}}, "direct", 1e9), 2 * (kInsideAlpha + 3e9 / 1e9));
}

TEST(PredictTime, ARankBeginsItsMessagesOneGapApart) {
  CostConstants constants = links();
  constants.between.gap_s = 3e-6;
  for (const int n : {2, 3, 7, 13}) {
    expect_near(seconds(constants, Topology::flat(n), "direct", 0), 2 * (kAlpha + (n - 2) * 3e-6));
    expect_near(seconds(constants, Topology::flat(n), "exchange", 0), kAlpha + (n - 2) * 3e-6);
    expect_near(seconds(constants, Topology::flat(n), "ring", 0), 2 * (n - 1) * kAlpha);
  }
}

TEST(PredictTime, SegmentsOfATreeFollowEachOther) {
  // 7 ranks: the trees have 2 levels below the top, and the busiest rank sends two buffers.
  CostConstants constants = links();
  const double bytes = 64e6;
  const int segments = 64;
  const double piece = bytes / segments / kBeta;  // of both trees
  const double took = seconds(constants, Topology::flat(7), "double_tree", bytes, segments);
  EXPECT_GE(took, 4 * kAlpha + 2 * (segments - 1) * piece);
  EXPECT_LE(took, 4 * (kAlpha + 2 * piece) + 1.1 * 2 * (segments - 1) * piece);
  // Short segments follow each other at the gaps of the busiest rank: 4 messages.
  constants.between.gap_s = 1e-6;
  EXPECT_GE(seconds(constants, Topology::flat(7), "double_tree", 0, segments),
            4 * kAlpha + (segments - 1) * 4e-6);
}

TEST(PredictTime, ATreeHasItsOwnLatency) {
  CostConstants constants = links();
  constants.network.tree_latency_s = 2 * kAlpha;
  expect_near(seconds(constants, Topology::flat(7), "double_tree", 0), 4 * 2 * kAlpha);
  expect_near(seconds(constants, Topology::flat(8), "recursive_doubling", 0), 3 * kAlpha);
}

TEST(PredictTime, MessagesInATorusCrossAllLinksOnTheirWay) {
  CostConstants constants = links();
  constants.network.torus = {4, 4};
  constants.network.hop_latency_s = 1e-6;
  // Distances 1, 2, 1 and 2 along a row or column; at distance 2, two messages share a link.
  const double bytes = 1e6;
  expect_near(seconds(constants, Topology::flat(16), "recursive_doubling", bytes),
              2 * (kAlpha + bytes / kBeta) + 2 * (kAlpha + 1e-6 + 2 * bytes / kBeta));
}

TEST(PredictTime, OfASizeIsTheTimeAtThatSize) {
  // Lines are found for some sizes only. Between them, the time must not jump.
  const Algorithm& ring = *find_algorithm("ring").value();
  const Topology topology = nodes_of(4, 4);
  const TimeCurve curve =
      predict_time(ring, complete_shape(ring, {.ranks = 16}).value(), topology, links());
  for (double bytes = 1; bytes < 1e12; bytes *= 1.5) {
    EXPECT_LE(curve.at(bytes), curve.at(1.5 * bytes));
    EXPECT_LE(curve.at(1.5 * bytes), 1.5 * curve.at(bytes) * (1 + kClose));
  }
}

}  // namespace
}  // namespace sluice::algorithms
