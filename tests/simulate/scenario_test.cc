#include "simulate/scenario.h"

#include <gtest/gtest.h>

#include "tests/simulate/fabrics.h"

namespace sluice::simulate {
namespace {

TEST(Scenario, ChangesTheClusterAndItsConditions) {
  ClusterScenario scenario{.cluster = thin_tree(4, 4)};
  scenario.cluster.between_efficiency = 0.5;
  ASSERT_TRUE(apply(scenario,
                    {"between.gbit_per_s=16", "between.latency_us=3", "oversubscription=1",
                     "background=0.25", "slow_node=4", "between.gap_us=0.5", "inside.gap_us=0.25"},
                    false)
                  .ok());
  EXPECT_DOUBLE_EQ(scenario.cluster.constants.between.bandwidth_bytes_per_s, 1e9)
      << "16 Gbit/s at an efficiency of one half";
  EXPECT_DOUBLE_EQ(scenario.cluster.constants.between.latency_s, 3e-6);
  EXPECT_DOUBLE_EQ(scenario.cluster.constants.network.levels[0].oversubscription, 1);
  EXPECT_DOUBLE_EQ(scenario.conditions.background, 0.25);
  EXPECT_DOUBLE_EQ(scenario.cluster.constants.between.gap_s, 0.5e-6);
  EXPECT_DOUBLE_EQ(scenario.cluster.constants.inside.gap_s, 0.25e-6);
  EXPECT_EQ(scenario.conditions.slow_node, 4);
  ASSERT_TRUE(apply(scenario, {"between.efficiency=1"}, false).ok());
  EXPECT_DOUBLE_EQ(scenario.cluster.constants.between.bandwidth_bytes_per_s, 2e9);
}

TEST(Scenario, ChangesTheDevices) {
  ClusterScenario scenario{.cluster = flat_fabric()};
  scenario.cluster.speeds = {{.framework = "f", .curve = {{32, 100}}, .optimizer_s = 0.01}};
  ASSERT_TRUE(apply(scenario, {"compute_speed=2", "input_images_per_s=70"}, false).ok());
  EXPECT_DOUBLE_EQ(scenario.cluster.speeds[0].step_seconds(32), 0.16);
  EXPECT_DOUBLE_EQ(scenario.cluster.speeds[0].optimizer_s, 0.005);
  EXPECT_DOUBLE_EQ(scenario.cluster.speeds[0].input_images_per_s, 70);
  EXPECT_NE(apply(scenario, {"grid_rows=1.5"}, false).message().find("whole number"),
            std::string::npos);
}

TEST(Scenario, LeavesKeysOfTheRecipeToTheRecipe) {
  ClusterScenario scenario{.cluster = flat_fabric()};
  ASSERT_TRUE(apply(scenario, {"theta=1M", "grid_rows=2"}, true).ok());
  EXPECT_EQ(scenario.recipe, std::vector<std::string>{"theta=1M"});
  EXPECT_NE(apply(scenario, {"between.gbit_per=4"}, false).message().find("did you mean"),
            std::string::npos);
  EXPECT_EQ(
      apply(scenario, {"grid_rows=0"}, false).message(),
      "--what-if grid_rows: grid_rows must be a whole number from 1 to 1000000000, not \"0\"");
  EXPECT_NE(apply(scenario, {"grid_rows"}, false).message().find("must be key=value"),
            std::string::npos);
}

}  // namespace
}  // namespace sluice::simulate
