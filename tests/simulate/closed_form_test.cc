// Without contention, every algorithm takes the time of its paper to within 0.1%, both event by
// event and step by step.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "simulate/collective.h"
#include "tests/simulate/fabrics.h"

namespace sluice::simulate {
namespace {

// The constants of flat_fabric(), and of the nodes of noded_fabric().
constexpr double kAlpha = 10e-6;
constexpr double kBeta = 1e9;
constexpr double kInsideAlpha = 2e-6;
constexpr double kInsideBeta = 10e9;
constexpr double kClose = 0.001;
constexpr double kSizes[] = {1e3, 1e6, 64e6};

struct Case {
  int ranks;
  double bytes;
  std::vector<int> grid;
  int segments = 1;
};

double seconds(const cluster::Cluster& cluster, std::string_view name, const Case& test,
               RunMethod method) {
  CollectiveSimulator simulator = CollectiveSimulator::on(cluster, test.ranks).value();
  const Algorithm& algorithm = *find_algorithm(name).value();
  const Shape shape =
      complete_shape(algorithm, {.ranks = test.ranks, .grid = test.grid, .segments = test.segments})
          .value();
  const std::vector<double> done =
      simulator.run(algorithm, shape, {.bytes = test.bytes}, method).value();
  return *std::max_element(done.begin(), done.end());
}

std::vector<int> rows(int count, int length) {
  return std::vector<int>(static_cast<std::size_t>(count), length);
}

class ClosedForms : public testing::TestWithParam<RunMethod> {
 protected:
  void expect(const cluster::Cluster& cluster, std::string_view name, const Case& test,
              double expected) const {
    EXPECT_NEAR(seconds(cluster, name, test, GetParam()), expected, kClose * expected)
        << name << ", " << test.ranks << " ranks, " << test.bytes << " bytes, " << test.segments
        << " segments";
  }
};
INSTANTIATE_TEST_SUITE_P(BothWays, ClosedForms,
                         testing::Values(RunMethod::Events, RunMethod::Steps),
                         [](const auto& method) {
                           return method.param == RunMethod::Events ? "Events" : "Steps";
                         });

TEST_P(ClosedForms, RingSendsEveryChunkAroundTwice) {
  for (const int n : {2, 3, 7, 13, 16, 64, 256}) {
    for (const double bytes : kSizes)
      expect(flat_fabric(), "ring", {n, bytes}, 2 * (n - 1) * (kAlpha + bytes / n / kBeta));
  }
}

TEST_P(ClosedForms, HalvingDoublingOfPowersOfTwoInBothOrders) {
  for (const char* name : {"halving_doubling", "halving_doubling:far"}) {
    for (const int n : {2, 4, 16, 64, 256}) {
      for (const double bytes : kSizes) {
        double expected = 0;  // halves, quarters, ..., in both phases
        for (double part = 0.5; part * n >= 1; part /= 2)
          expected += 2 * (kAlpha + part * bytes / kBeta);
        expect(flat_fabric(), name, {n, bytes}, expected);
      }
    }
  }
}

TEST_P(ClosedForms, HalvingDoublingOfOtherRankCounts) {
  // Every step sends half of the remaining chunks, rounded down.
  for (const int n : {7, 13, 97}) {
    for (const double bytes : kSizes) {
      double expected = 0;
      for (int left = n; left > 1;) {
        const int half = left / 2;
        expected += 2 * (kAlpha + half * bytes / n / kBeta);
        left -= half;
      }
      expect(flat_fabric(), "halving_doubling", {n, bytes}, expected);
    }
  }
  // With 3 ranks, each rank sends its chunk to both others at once.
  for (const double bytes : kSizes)
    expect(flat_fabric(), "halving_doubling", {3, bytes}, 3 * kAlpha + 4 * bytes / 3 / kBeta);
}

TEST_P(ClosedForms, RecursiveDoublingSendsTheWholeBufferEachTime) {
  cluster::Cluster cluster = flat_fabric();
  cluster.constants.reduce_s_per_byte = 1e-10;
  for (const int n : {2, 8, 32}) {
    const double bytes = 4e6;
    expect(cluster, "recursive_doubling", {n, bytes},
           std::log2(n) * (kAlpha + bytes / kBeta + bytes * 1e-10));
  }
}

TEST_P(ClosedForms, TorusIsRingsOverRowsAndColumns) {
  for (const auto& [x, y] : {std::pair{1, 7}, std::pair{2, 4}, std::pair{3, 5}, std::pair{4, 4},
                             std::pair{8, 8}, std::pair{13, 7}, std::pair{16, 16}}) {
    const int n = x * y;  // x rows of y
    for (const double bytes : kSizes) {
      const double along_rows = 2 * (y - 1) * (kAlpha + bytes / y / kBeta);
      const double along_columns = 2 * (x - 1) * (kAlpha + bytes / n / kBeta);
      expect(flat_fabric(), "torus", {n, bytes, rows(x, y)}, along_rows + along_columns);
    }
  }
}

TEST_P(ClosedForms, DirectSendsOneMessageToEveryRankTwice) {
  for (const int n : {2, 3, 7, 13, 16, 64, 256}) {
    for (const double bytes : kSizes)
      expect(flat_fabric(), "direct", {n, bytes}, 2 * (kAlpha + (n - 1) * bytes / n / kBeta));
  }
}

// The time inside a node, where every rank sends a slice to every other.
double inside_of(int ranks, double bytes) {
  return 2 * (kInsideAlpha + (ranks - 1) * bytes / ranks / kInsideBeta);
}

TEST_P(ClosedForms, HierarchicalRingIsARingOfNodes) {
  for (const auto& [nodes, ranks] :
       {std::pair{3, 4}, std::pair{7, 2}, std::pair{13, 4}, std::pair{16, 4}, std::pair{64, 4}}) {
    for (const double bytes : kSizes) {
      const double between = 2 * (nodes - 1) * (kAlpha + bytes / nodes / kBeta);
      expect(noded_fabric(ranks), "hierarchical:ring", {nodes * ranks, bytes, rows(nodes, ranks)},
             inside_of(ranks, bytes) + between);
    }
  }
}

TEST_P(ClosedForms, HierarchicalIsHalvingDoublingOfNodes) {
  for (const auto& [nodes, ranks] : {std::pair{4, 4}, std::pair{16, 4}, std::pair{32, 8}}) {
    for (const double bytes : kSizes) {
      const double between =
          2 * std::log2(nodes) * kAlpha + 2.0 * (nodes - 1) / nodes * bytes / kBeta;
      expect(noded_fabric(ranks), "hierarchical", {nodes * ranks, bytes, rows(nodes, ranks)},
             inside_of(ranks, bytes) + between);
    }
  }
}

TEST_P(ClosedForms, ADoubleTreeInOnePieceSendsTheBufferOncePerLevelAndDirection) {
  // In full trees, every parent receives half of the buffer from each of two children at the same
  // time. Later it sends half of the buffer to each.
  for (const int levels : {1, 2, 3, 5, 7}) {
    for (const double bytes : kSizes) {
      expect(flat_fabric(), "double_tree", {(2 << levels) - 1, bytes},
             2 * levels * (kAlpha + bytes / kBeta));
    }
  }
}

TEST_P(ClosedForms, ADoubleTreeInManySegmentsTakesTwoBuffersAndPaysLatencyOnce) {
  // The busiest rank sends two buffers: up in both trees, and down to two children in one. Filling
  // and emptying the trees takes one segment up and down, at a quarter of the rate. Event by event,
  // leaves run ahead and take link time from segments that ranks wait for.
  const double bytes = 64e6;
  const int segments = 64;
  const double piece = bytes / 2 / segments / kBeta;
  const double unfair = GetParam() == RunMethod::Events ? 1.25 : 1;
  for (const int levels : {3, 5}) {
    const double took =
        seconds(flat_fabric(), "double_tree", {(2 << levels) - 1, bytes, {}, segments}, GetParam());
    EXPECT_GE(took, 2 * bytes / kBeta);
    EXPECT_LE(took, unfair * (2 * bytes / kBeta + 2 * levels * (kAlpha + 4 * piece)));
  }
}

TEST_P(ClosedForms, TheReductionOfARingIsPaidOnce) {
  cluster::Cluster cluster = flat_fabric();
  cluster.constants.reduce_s_per_byte = 1e-9;
  const int n = 8;
  const double bytes = 8e6;
  expect(cluster, "ring", {n, bytes},
         2 * (n - 1) * (kAlpha + bytes / n / kBeta) + (n - 1) * bytes / n * 1e-9);
}

TEST_P(ClosedForms, AChunkPaysTheMeanHopNotTheSlowest) {
  // Short messages on a ring of 4 nodes of 4 ranks: 3 of 4 hops are inside a node, and latency does
  // not occupy a link. A chunk makes 30 hops, at most 8 of them between nodes.
  const double took = seconds(noded_fabric(4), "ring", {16, 16}, GetParam());
  EXPECT_GE(took, 23 * kInsideAlpha + 7 * kAlpha);
  EXPECT_LE(took, (22 * kInsideAlpha + 8 * kAlpha) * (1 + kClose));
}

TEST_P(ClosedForms, ARankPreparesItsMessagesOneGapApart) {
  // The last of n - 1 messages waits for n - 2 gaps.
  cluster::Cluster cluster = flat_fabric();
  const double gap = 2e-6;
  cluster.constants.between.gap_s = gap;
  for (const int n : {2, 3, 7, 13, 64}) {
    for (const double bytes : kSizes) {
      expect(cluster, "direct", {n, bytes},
             2 * (kAlpha + (n - 2) * gap + (n - 1) * bytes / n / kBeta));
      // A rank of a ring sends one message in each step, and a gap is shorter than a hop.
      expect(cluster, "ring", {n, bytes}, 2 * (n - 1) * (kAlpha + bytes / n / kBeta));
    }
  }
}

TEST_P(ClosedForms, ShortSegmentsOfATreeFollowEachOtherAtTheGapsOfTheBusiestRank) {
  // In trees of 7 ranks the busiest rank sends 4 messages for each segment. A segment may also wait
  // for the hop of an earlier one.
  cluster::Cluster cluster = flat_fabric();
  const double gap = 2e-6;
  cluster.constants.between.gap_s = gap;
  const int segments = 64;
  const double took = seconds(cluster, "double_tree", {7, 64, {}, segments}, GetParam());
  EXPECT_GE(took, (segments - 1) * 4 * gap);
  EXPECT_LE(took, (segments + 4) * (kAlpha + 4 * gap));
}

TEST_P(ClosedForms, ASlowNodeSlowsTheWholeRing) {
  // Every chunk crosses the slow links, so the ring is as slow as if all links were.
  const double bytes = 64e6;
  const int n = 8;
  CollectiveSimulator simulator =
      CollectiveSimulator::on(flat_fabric(), n, {.slow_node = 3, .slow_part = 0.25}).value();
  const Algorithm& ring = *find_algorithm("ring").value();
  const Shape shape = complete_shape(ring, {.ranks = n}).value();
  const auto done = simulator.run(ring, shape, {.bytes = bytes}, GetParam()).value();
  const double expected = 2 * (n - 1) * (kAlpha + bytes / n / (kBeta / 4));
  EXPECT_NEAR(*std::max_element(done.begin(), done.end()), expected, 0.05 * expected);
}

TEST_P(ClosedForms, BackgroundLoadTakesItsFractionOfTheLinks) {
  const int n = 8;
  const double bytes = 64e6;
  CollectiveSimulator simulator =
      CollectiveSimulator::on(flat_fabric(), n, {.background = 0.2}).value();
  const Algorithm& ring = *find_algorithm("ring").value();
  const Shape shape = complete_shape(ring, {.ranks = n}).value();
  const auto done = simulator.run(ring, shape, {.bytes = bytes}, GetParam()).value();
  const double expected = 2 * (n - 1) * (kAlpha + bytes / n / (0.8 * kBeta));
  EXPECT_NEAR(*std::max_element(done.begin(), done.end()), expected, kClose * expected);
}

TEST_P(ClosedForms, ALateRankDelaysTheOthers) {
  CollectiveSimulator simulator = CollectiveSimulator::on(flat_fabric(), 4).value();
  const Algorithm& ring = *find_algorithm("ring").value();
  const Shape shape = complete_shape(ring, {.ranks = 4}).value();
  const auto done =
      simulator.run(ring, shape, {.bytes = 4e6, .starts_s = {0, 0, 1, 0}}, GetParam()).value();
  const double alone = 6 * (kAlpha + 1e6 / kBeta);
  EXPECT_NEAR(*std::max_element(done.begin(), done.end()), 1 + alone, kClose * alone);
}

}  // namespace
}  // namespace sluice::simulate
