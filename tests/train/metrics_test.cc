#include "train/report/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "tests/train/tiny_training.h"

namespace sluice::train {
namespace {

std::vector<nlohmann::json> lines(const std::filesystem::path& path) {
  std::vector<nlohmann::json> all;
  std::ifstream file{path};
  for (std::string line; std::getline(file, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

TEST(Metrics, HaveOneObjectInEachLine) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  Metrics metrics = Metrics::open(path, 0).value();
  metrics.write(StepReport{.step = 3, .loss = std::nan(""), .elapsed_s = 1});
  metrics.write(EvaluationReport{.step = 4, .accuracy = 61.5, .top5 = 80});
  ASSERT_TRUE(metrics.status().ok());
  const auto all = lines(path);
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0]["kind"], "step");
  EXPECT_EQ(all[0]["step"], 3);
  EXPECT_TRUE(all[0]["loss"].is_null());
  EXPECT_EQ(all[1]["kind"], "evaluation");
  EXPECT_EQ(all[1]["accuracy"], 61.5);
  EXPECT_EQ(all[1]["top5"], 80);
}

TEST(Metrics, AResumedRunRemovesTheStepsThatItTakesAgain) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  {
    Metrics metrics = Metrics::open(path, 0).value();
    for (int step = 1; step <= 6; ++step)
      metrics.write(StepReport{.step = step, .elapsed_s = step * 1.0});
    std::ofstream{path, std::ios::app} << "{\"torn";
  }
  Metrics metrics = Metrics::open(path, 4).value();
  metrics.write(StepReport{.step = 5, .elapsed_s = 9});
  const auto all = lines(path);
  ASSERT_EQ(all.size(), 5U);
  for (int step = 1; step <= 5; ++step)
    EXPECT_EQ(all[static_cast<std::size_t>(step - 1)]["step"], step);
}

TEST(Metrics, ALongRunWritesFewLines) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "metrics.jsonl";
  Metrics metrics = Metrics::open(path, 0).value();
  for (int second = 0; second < 100'000; ++second)
    metrics.write(StepReport{.step = second, .elapsed_s = second * 1.0});
  EXPECT_LT(lines(path).size(), 3000U);
}

TEST(Metrics, RefuseAMissingFolder) {
  EXPECT_FALSE(Metrics::open("/nowhere/metrics.jsonl", 0).ok());
}

}  // namespace
}  // namespace sluice::train
