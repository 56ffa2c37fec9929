// On a fabric without contention every algorithm takes what its paper says, to 0.1%.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "simulate/collective.h"
#include "tests/simulate/fabrics.h"

namespace sluice {
namespace {

constexpr double kAlpha = 10e-6;
constexpr double kBeta = 1e9;
constexpr double kClose = 0.001;

double seconds(const Cluster& cluster, std::string_view name, int ranks, double bytes,
               RunMethod method, int segments = 1, int lanes = 1, std::vector<int> grid = {}) {
  CollectiveSimulator simulator = CollectiveSimulator::on(cluster, ranks).value();
  const Algorithm& algorithm = *find_algorithm(name).value();
  const Shape shape =
      complete_shape(algorithm, {.ranks = ranks, .grid = std::move(grid), .segments = segments})
          .value();
  const std::vector<double> done =
      simulator.run(algorithm, shape, {.bytes = bytes, .lanes = lanes}, method).value();
  return *std::max_element(done.begin(), done.end());
}

class ClosedForms : public testing::TestWithParam<RunMethod> {};
INSTANTIATE_TEST_SUITE_P(BothWays, ClosedForms,
                         testing::Values(RunMethod::Events, RunMethod::Steps),
                         [](const auto& method) {
                           return method.param == RunMethod::Events ? "Events" : "Steps";
                         });

TEST_P(ClosedForms, Ring) {
  for (const int n : {2, 3, 7, 16}) {
    for (const double bytes : {1e3, 1e6, 64e6}) {
      const double expected = 2 * (n - 1) * (kAlpha + bytes / n / kBeta);
      EXPECT_NEAR(seconds(flat_fabric(), "ring", n, bytes, GetParam()), expected, kClose * expected)
          << n << " ranks, " << bytes << " bytes";
    }
  }
}

TEST_P(ClosedForms, HalvingDoublingInEitherOrder) {
  for (const char* name : {"halving_doubling", "halving_doubling:far"}) {
    for (const int n : {2, 4, 16, 32}) {
      for (const double bytes : {1e3, 1e6, 64e6}) {
        const double expected = 2 * std::log2(n) * kAlpha + 2.0 * (n - 1) / n * bytes / kBeta;
        EXPECT_NEAR(seconds(flat_fabric(), name, n, bytes, GetParam()), expected, kClose * expected)
            << name << ", " << n << " ranks, " << bytes << " bytes";
      }
    }
  }
}

TEST_P(ClosedForms, RecursiveDoublingSendsTheWholeBufferEachTime) {
  Cluster cluster = flat_fabric();
  cluster.constants.reduce_s_per_byte = 1e-10;
  for (const int n : {2, 8, 32}) {
    const double bytes = 4e6;
    const double expected = std::log2(n) * (kAlpha + bytes / kBeta + bytes * 1e-10);
    EXPECT_NEAR(seconds(cluster, "recursive_doubling", n, bytes, GetParam()), expected,
                kClose * expected);
  }
}

TEST_P(ClosedForms, TorusIsTwoRingsOverRowsAndColumns) {
  for (const auto& [x, y] : {std::pair{2, 4}, std::pair{4, 4}, std::pair{3, 5}}) {
    const int n = x * y;  // x rows of y
    const double bytes = 8e6;
    const double expected = 2 * ((y - 1) + (x - 1)) * kAlpha + 2.0 * (n - 1) / n * bytes / kBeta;
    EXPECT_NEAR(seconds(flat_fabric(), "torus", n, bytes, GetParam(), 1, 1,
                        std::vector<int>(static_cast<std::size_t>(x), y)),
                expected, kClose * expected);
  }
}

TEST_P(ClosedForms, TheReductionOfARingIsPaidOnce) {
  Cluster cluster = flat_fabric();
  cluster.constants.reduce_s_per_byte = 1e-9;
  const int n = 8;
  const double bytes = 8e6;
  const double expected = 2 * (n - 1) * (kAlpha + bytes / n / kBeta) + (n - 1) * bytes / n * 1e-9;
  EXPECT_NEAR(seconds(cluster, "ring", n, bytes, GetParam()), expected, kClose * expected);
}

TEST_P(ClosedForms, AChunkPaysTheMeanHopNotTheSlowest) {
  // Short messages round a ring of 4 nodes of 4: 3 hops in 4 are inside, and latency takes none of
  // a link's time. A chunk makes 30 hops, at most 8 of them between nodes.
  const double bytes = 16;
  const double took = seconds(noded_fabric(4), "ring", 16, bytes, GetParam());
  EXPECT_GE(took, (23 * 2 + 7 * 10) * 1e-6);
  EXPECT_LE(took, (22 * 2 + 8 * 10) * 1e-6 * 1.001);
}

TEST_P(ClosedForms, LanesHideLatencyAndShareLinks) {
  // Two lanes of a ring: half the chunk each; the links are never idle once messages are long.
  const int n = 4;
  const double bytes = 400e6;
  const double one = seconds(flat_fabric(), "ring", n, bytes, GetParam(), 1, 1);
  const double two = seconds(flat_fabric(), "ring", n, bytes, GetParam(), 1, 2);
  const double floor = 2.0 * (n - 1) / n * bytes / kBeta;
  EXPECT_GE(two, floor);
  EXPECT_LE(two, one);
}

TEST(ClosedFormsOfTrees, TwoRanksExchangeHalves) {
  // Each is the root of one tree: half the buffer up and half of it down, in segments.
  const double bytes = 8e6;
  for (const int segments : {1, 4}) {
    const double piece = bytes / 2 / segments / kBeta;
    const double expected = 2 * kAlpha + (segments + 1) * piece;
    EXPECT_GE(seconds(flat_fabric(), "double_tree", 2, bytes, RunMethod::Events, segments),
              expected * (1 - kClose));
  }
}

TEST(Lateness, ARankThatComesLateHoldsUpTheOthers) {
  CollectiveSimulator simulator = CollectiveSimulator::on(flat_fabric(), 4).value();
  const Algorithm& ring = *find_algorithm("ring").value();
  const Shape shape = complete_shape(ring, {.ranks = 4}).value();
  for (const RunMethod method : {RunMethod::Events, RunMethod::Steps}) {
    const auto done =
        simulator.run(ring, shape, {.bytes = 4e6, .starts_s = {0, 0, 1, 0}}, method).value();
    const double alone = 6 * (kAlpha + 1e6 / kBeta);
    EXPECT_NEAR(*std::max_element(done.begin(), done.end()), 1 + alone, 1e-3 * alone);
  }
}

}  // namespace
}  // namespace sluice
