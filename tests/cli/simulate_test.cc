// `sluice simulate` as a user meets it.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

void expect_error(const std::string& arguments, const std::string& sentence) {
  const Outcome outcome = shell("SLUICE simulate " + arguments);
  EXPECT_EQ(outcome.status, 2) << arguments << "\n" << outcome.err;
  EXPECT_EQ(outcome.out, "") << arguments;
  EXPECT_NE(outcome.err.find(sentence), std::string::npos) << arguments << "\n" << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1)
      << "one sentence: " << outcome.err;
}

nlohmann::json simulated(const std::string& arguments) {
  const Outcome outcome = shell("SLUICE simulate --json " + arguments);
  EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.err;
  auto json = nlohmann::json::parse(outcome.out, nullptr, false);
  EXPECT_EQ(json["simulated"], true);
  return json;
}

const std::string kFujitsu = "--cluster abci --framework mxnet --recipe fujitsu-74s ";

TEST(Simulate, BadInputIsAnErrorOfOneSentence) {
  expect_error("--cluster abci --ranks 8", "give either --allreduce BYTES or --recipe NAME");
  expect_error("--cluster abcj --ranks 8 --allreduce 1M", "did you mean abci?");
  expect_error("--cluster abci --ranks 8 --allreduce 1M --algorithm rign", "did you mean ring?");
  expect_error("--cluster abci --ranks 8 --allreduce 1M --what-if grid_row=2",
               "did you mean grid_rows?");
  expect_error("--cluster abci --ranks 8 --allreduce 1M --what-if lanes=2",
               "there is no such key without a recipe");
  expect_error("--cluster abci --ranks 8 --recipe sony-224s",
               "choose a framework from mxnet, nnl-1, nnl-2");
  expect_error("--cluster abci --ranks 8 --recipe demo", "has no speed for");
  expect_error("--cluster abci --ranks 8 --allreduce 1M --plot x.svg", "--plot needs --recipe");
  expect_error(kFujitsu + "--ranks 64 --algorithm torus --what-if grid_rows=7",
               "64 ranks do not fill 7 rows evenly");
  expect_error("--cluster abci --ranks 8 --allreduce 1M --algorithm torus --what-if grid_rows=3",
               "8 ranks do not fill 3 rows evenly");
  expect_error(kFujitsu + "--ranks 8 --scaling weird", "--scaling must be weak or strong");
  expect_error(kFujitsu + "--ranks 8 --what-if thetta=1", "did you mean theta?");
  expect_error(kFujitsu + "--ranks 8 --trace /nonexistent/trace.json", "cannot be written");
  expect_error("--cluster abci --ranks 8 --allreduce 1M --what-if slow_node=9",
               "slow_node 9 does not exist");
  expect_error("--cluster abci --ranks 8 --allreduce 1M --what-if slow_node=1 slow_part=0",
               "use a fraction above 0, at most 1");
  expect_error("--cluster abci --ranks 8 --allreduce 1M --what-if background=1",
               "leaves nothing of a link");
  expect_error("--cluster abci --ranks 99999 --allreduce 1M", "--ranks must be");
}

TEST(Simulate, AScalingTableHasARowForEachNumberOfRanksAndACurve) {
  const Outcome outcome = shell("SLUICE simulate " + kFujitsu + "--ranks 4,16,64");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(outcome.out.rfind("Simulated: ", 0), 0U) << outcome.out;
  EXPECT_NE(outcome.out.find("Nothing was measured"), std::string::npos);
  EXPECT_NE(outcome.out.find("efficiency over ranks, simulated"), std::string::npos);
  const auto json = simulated(kFujitsu + "--ranks 4,16,64");
  ASSERT_EQ(json["rows"].size(), 3U);
  double last = 1;
  for (const auto& row : json["rows"]) {
    for (const char* key : {"iteration_ms", "exposed_comm_ms", "images_per_s", "efficiency",
                            "speedup", "time_to_train_s", "exposed_comm_fraction"})
      EXPECT_TRUE(row.contains(key)) << key;
    EXPECT_LT(row["efficiency"], last) << "more ranks lose more";
    last = row["efficiency"];
  }
  EXPECT_EQ(json["rows"][2]["global_batch"], 64 * 40) << "weak scaling keeps a rank's batch";
}

TEST(Simulate, StrongScalingKeepsTheGlobalBatch) {
  const auto json = simulated(kFujitsu + "--ranks 4,8,16 --scaling strong");
  EXPECT_EQ(json["scaling"], "strong");
  for (const auto& row : json["rows"]) EXPECT_EQ(row["global_batch"], 4 * 40);
  expect_error(kFujitsu + "--ranks 4,64 --scaling strong", "cannot be shared evenly");
}

TEST(Simulate, WhatIfChangesClusterRecipeAndDevices) {
  const std::string line = "--cluster mn-1-10gbe --recipe chainermn-cloud --ranks 32 --what-if ";
  const auto time = [&](const std::string& what_if) {
    return simulated(line + what_if)["time_to_train_s"].get<double>();
  };
  const double plain = time("double_buffering=false wire=f32");
  EXPECT_LT(time("double_buffering=true wire=f16"), 0.5 * plain);
  EXPECT_LT(time("double_buffering=false wire=f32 between.gbit_per_s=100"), 0.6 * plain);
  EXPECT_GT(time("double_buffering=false wire=f32 background=0.5"), 1.5 * plain);
  EXPECT_GT(time("double_buffering=false wire=f32 slow_node=1 slow_part=0.25"), 2 * plain);
  EXPECT_LT(time("double_buffering=false wire=f32 compute_speed=4"), plain);
}

TEST(Simulate, RepeatsTheSameBytes) {
  const std::string svg = testing::TempDir() + "curve.svg";
  const std::string trace = testing::TempDir() + "trace.json";
  const std::string line = "SLUICE simulate " + kFujitsu + "--ranks 4,32 --plot " + svg +
                           " --trace " + trace + " --what-if jitter_us=300 jitter_seed=";
  const Outcome first = shell(line + "7");
  ASSERT_EQ(first.status, 0) << first.err;
  const std::string first_svg = read_all(svg);
  const std::string first_trace = read_all(trace);
  EXPECT_EQ(shell(line + "7").out, first.out);
  EXPECT_EQ(read_all(svg), first_svg);
  EXPECT_EQ(read_all(trace), first_trace);
  EXPECT_NE(shell(line + "8").out, first.out) << "with another seed, other ranks are late";
  EXPECT_EQ(first_svg.rfind("<svg", 0), 0U);
}

TEST(Simulate, TheTraceIsInTheFormatOfATimeline) {
  const std::string path = testing::TempDir() + "step.json";
  const auto json = simulated(kFujitsu + "--ranks 64 --trace " + path);
  const auto trace = nlohmann::json::parse(read_all(path));
  std::map<int, std::string> rows;
  std::map<std::string, double> ends_us;
  int transfers = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") {
      EXPECT_EQ(event["args"]["name"], "rank 0, simulated");
    }
    if (event["name"] == "thread_name") rows[event["tid"]] = event["args"]["name"];
    if (event["ph"] != "X") continue;
    ends_us[event["name"]] = event["ts"].get<double>() + event["dur"].get<double>();
    if (event["name"] == "transfer") ++transfers;
  }
  EXPECT_EQ(rows[0], "compute");
  EXPECT_EQ(rows[2], "bucket 0");
  EXPECT_EQ(transfers, 4) << "the groups of the recipe";
  EXPECT_NEAR(ends_us["forward"], json["compute_ms"].get<double>() * 1e3 / 3, 0.01);
  EXPECT_NEAR(ends_us["finish"], json["iteration_ms"].get<double>() * 1e3, 0.01);
}

TEST(Simulate, CollectivesAreLabelledAsSimulated) {
  const Outcome table =
      shell("SLUICE simulate --cluster mn-1 --ranks 16 --allreduce 1M --algorithm all");
  EXPECT_EQ(table.status, 0) << table.err;
  EXPECT_EQ(table.out.rfind("Simulated: ", 0), 0U) << table.out;
  EXPECT_EQ(simulated("--cluster mn-1 --ranks 8,16 --allreduce 1M")["rows"].size(), 2U);
}

TEST(Simulate, RunsOnEveryCluster) {
  for (const char* cluster : {"mn-1", "mn-1-10gbe", "aws-p3-16xlarge", "abci", "sensetime-p",
                              "sensetime-v", "facebook-bigbasin", "tencent-p40", "tpu-v2-pod",
                              "tpu-v3-pod", "ascend-910", "h200-hgx", "this-machine", "generic"}) {
    const Outcome outcome = shell(
        std::string{"SLUICE simulate --ranks 2,16 --allreduce 4M --cluster "}.append(cluster));
    EXPECT_EQ(outcome.status, 0) << cluster << ": " << outcome.err;
  }
}

TEST(Simulate, HelpShowsExamplesAndKeys) {
  const Outcome outcome = shell("SLUICE simulate --help");
  EXPECT_EQ(outcome.status, 0);
  for (const char* word : {"Examples:", "--scaling", "--plot", "--trace", "slow_node",
                           "straggler_ms", "background", "jitter_seed"})
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
}

}  // namespace
}  // namespace sluice::cli
