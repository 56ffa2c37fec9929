// The public simulator, against the command and against closed forms.
#include "sluice/analysis/simulate.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "tests/cli/shell.h"

namespace sluice {
namespace {

nlohmann::json command(const std::string& arguments) {
  const cli::Outcome outcome = cli::shell("SLUICE simulate --json " + arguments);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  return nlohmann::json::parse(outcome.out);
}

void expect_equal(const SimulatedTraining& training, const nlohmann::json& row) {
  EXPECT_DOUBLE_EQ(training.iteration_s * 1e3, row["iteration_ms"].get<double>());
  EXPECT_DOUBLE_EQ(training.images_per_s, row["images_per_s"].get<double>());
  EXPECT_DOUBLE_EQ(training.speedup, row["speedup"].get<double>());
  EXPECT_DOUBLE_EQ(training.efficiency, row["efficiency"].get<double>());
  EXPECT_DOUBLE_EQ(training.exposed_comm_fraction, row["exposed_comm_fraction"].get<double>());
  EXPECT_DOUBLE_EQ(training.time_to_train_s, row["time_to_train_s"].get<double>());
}

TEST(PublicSimulate, TrainingsEqualTheCommands) {
  expect_equal(simulate_training(
                   {.cluster = "abci", .recipe = "fujitsu-74s", .framework = "mxnet", .ranks = 64})
                   .value(),
               command("--cluster abci --recipe fujitsu-74s --framework mxnet --ranks 64"));
  expect_equal(
      simulate_training({.cluster = "mn-1-10gbe",
                         .recipe = "chainermn-cloud",
                         .ranks = 32,
                         .what_if = {"wire=f16", "between.gbit_per_s=20"}})
          .value(),
      command("--cluster mn-1-10gbe --recipe chainermn-cloud --ranks 32 --what-if wire=f16 "
              "between.gbit_per_s=20"));
}

TEST(PublicSimulate, AllReducesEqualTheCommands) {
  const auto times =
      simulate_all_reduce(
          {.cluster = "mn-1", .ranks = 16, .bytes = 1'000'000, .what_if = {"oversubscription=1"}})
          .value();
  const auto rows = command(
      "--cluster mn-1 --ranks 16 --allreduce 1MB --algorithm all --what-if oversubscription=1")
      ["rows"];
  ASSERT_EQ(times.size(), rows.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    EXPECT_EQ(times[i].algorithm, rows[i]["algorithm"].get<std::string>());
    EXPECT_DOUBLE_EQ(times[i].seconds * 1e6, rows[i]["simulated_us"].get<double>());
  }
}

// A cluster of one switch: 1 GB/s and 10 us between any two ranks, 100 images/s, no stragglers.
std::string own_cluster() {
  std::string path = testing::TempDir() + "one_switch.toml";
  std::ofstream{path} << R"(name = "one-switch"
ranks_per_node = 1
steady = true
[between]
gbit_per_s = 8
efficiency = 1
latency_us = 10
[inside]
gbyte_per_s = 1
latency_us = 10
[reduce]
gbyte_per_s = 1e9
[[speed]]
framework = "f"
precision = "f32"
model = "resnet50"
images_per_s = [[32, 100]]
)";
  return path;
}

TEST(PublicSimulate, ARingTakesItsClosedForm) {
  const auto times =
      simulate_all_reduce({.cluster = own_cluster(), .ranks = 8, .bytes = 64'000'000}).value();
  std::map<std::string, double> seconds;
  for (const SimulatedAllReduce& time : times) seconds[time.algorithm] = time.seconds;
  EXPECT_NEAR(seconds.at("ring"), 14 * (10e-6 + 8e6 / 1e9), 1e-3 * seconds.at("ring"));
  EXPECT_TRUE(std::is_sorted(times.begin(), times.end(), [](const auto& a, const auto& b) {
    return a.seconds < b.seconds;
  })) << "the fastest comes first";
}

TEST(PublicSimulate, ComputeAndCommunicationAddUpWithoutOverlap) {
  const SimulatedTraining training =
      simulate_training({.cluster = own_cluster(), .recipe = "pfn-15min", .ranks = 4}).value();
  // 32 images at 100 images/s, then a ring of 4 ranks over ResNet-50's gradients in f16.
  const double ring = 6 * (10e-6 + 2 * 25557032.0 / 4 / 1e9);
  EXPECT_NEAR(training.iteration_s, 0.32 + ring, 1e-6);
  EXPECT_NEAR(training.images_per_s, 128 / (0.32 + ring), 1e-3);
  EXPECT_NEAR(training.efficiency, 0.32 / (0.32 + ring), 1e-6);
  EXPECT_NEAR(training.speedup, 4 * training.efficiency, 1e-9);
  EXPECT_NEAR(training.exposed_comm_fraction, ring / (0.32 + ring), 1e-6);
}

TEST(PublicSimulate, BadInputIsAnError) {
  EXPECT_EQ(simulate_all_reduce({.cluster = "abcj", .ranks = 2, .bytes = 1}).status().message(),
            "there is no cluster and no file \"abcj\": did you mean abci?");
  EXPECT_EQ(simulate_all_reduce({.cluster = "abci", .ranks = 2}).status().message(),
            "bytes must be at least 1, not 0");
  EXPECT_EQ(simulate_all_reduce({.cluster = "abci", .ranks = 0, .bytes = 1}).status().message(),
            "ranks must be from 1 to 8192, not 0");
  EXPECT_EQ(simulate_training({.cluster = "abci", .recipe = "sony-24s"}).status().message(),
            "there is no recipe and no file \"sony-24s\": did you mean sony-224s?");
  EXPECT_EQ(simulate_training({.cluster = "abci", .recipe = "sony-224s"}).status().message(),
            "cluster abci has several speeds for f16 resnet50: choose a framework from mxnet, "
            "nnl-1, nnl-2");
  EXPECT_FALSE(
      simulate_training({.cluster = "mn-1", .recipe = "pfn-15min", .what_if = {"grid_row=2"}})
          .ok());
}

TEST(PublicSimulate, TheDocumentShowsTheCompiledExample) {
  const std::string example = cli::read_all(SLUICE_SOURCE_DIR "/examples/simulate/main.cc");
  const std::string page = cli::read_all(SLUICE_SOURCE_DIR "/docs/simulation.md");
  ASSERT_FALSE(example.empty());
  EXPECT_NE(page.find("```cpp\n" + example + "```"), std::string::npos);
}

}  // namespace
}  // namespace sluice
