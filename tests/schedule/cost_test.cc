#include "sluice/analysis/cost.h"

#include <gtest/gtest.h>

#include <array>

namespace sluice::schedule {
namespace {

constexpr CostConstants kLinks{
    .inside = {1e-6, 10e9}, .between = {5e-6, 1e9}, .reduce_s_per_byte = 1e-10};

TEST(Cost, AStepTakesAsLongAsTheSlowerClass) {
  const Load load{{.repeat = 3, .inside = {2, 0.5}, .between = {1, 0.25}, .reduced = 0.5}};
  // Inside: 2 us + 50 us; between: 5 us + 250 us; three times; and 150 us of reduction.
  EXPECT_NEAR(predict_seconds(load, 1e6, kLinks), 3 * 255e-6 + 150e-6, 1e-12);
}

TEST(Cost, AStepIsReducedAfterItHasArrived) {
  const Load load{{.repeat = 1, .inside = {}, .between = {1, 1}, .reduced = 1}};
  EXPECT_NEAR(predict_seconds(load, 1e6, kLinks), 5e-6 + 1e-3 + 1e-4, 1e-12);
}

TEST(Cost, OverlapHidesLatencyBehindBytes) {
  CostConstants links = kLinks;
  const Load load{{.repeat = 2, .inside = {}, .between = {4, 0.5}}};
  // A step has 20 us of latency; its bytes take 50 us or 5 us.
  links.between.overlap = 1;
  EXPECT_NEAR(predict_seconds(load, 100e3, links), 2 * 50e-6, 1e-12) << "all behind the bytes";
  EXPECT_NEAR(predict_seconds(load, 10e3, links), 2 * 20e-6, 1e-12) << "all behind the messages";
  links.between.overlap = 0.25;
  EXPECT_NEAR(predict_seconds(load, 100e3, links), 2 * (50e-6 + 20e-6 - 5e-6), 1e-12);
}

TEST(Cost, RanksOfANodeShareItsLink) {
  // Ranks 0 and 1 (one node) both send their whole buffer to ranks 2 and 3 (another).
  std::vector<Program> programs(4, Program{Chunking{2}});
  for (Program& program : programs) program.begin_step();
  constexpr Range kWhole{.first = 0, .count = 2};
  programs[0].send(2, kWhole);
  programs[1].send(3, {.first = 0});  // two transfers, which are one message
  programs[1].send(3, {.first = 1});
  const std::array<Rank, 2> from_0{kOwn, 0};
  programs[2].receive_reduce(kWhole, from_0);
  const Schedule schedule{"by_hand", {.ranks = 4}, false, programs};

  const Load nodes = count_load(schedule, {{2, 2}});
  ASSERT_EQ(nodes.size(), 1U);
  EXPECT_EQ(nodes[0].between.messages, 1);
  EXPECT_DOUBLE_EQ(nodes[0].between.bytes, 2);
  EXPECT_EQ(nodes[0].inside.messages, 0);
  EXPECT_DOUBLE_EQ(nodes[0].reduced, 1);

  const Load flat = count_load(schedule, Topology::flat(4));
  EXPECT_DOUBLE_EQ(flat[0].between.bytes, 1);
  const Load one_node = count_load(schedule, {{4}});
  EXPECT_DOUBLE_EQ(one_node[0].inside.bytes, 1);
  EXPECT_EQ(one_node[0].between.messages, 0);
}

}  // namespace
}  // namespace sluice::schedule
