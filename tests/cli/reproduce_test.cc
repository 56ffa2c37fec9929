// The bars that predictions are held to, and the honesty of calibrations.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "cli/reproduce/reproduction.h"

namespace sluice::cli {
namespace {

const std::vector<Reproduction>& reproduced() {
  static const std::vector<Reproduction> kAll = reproduce().value();
  return kAll;
}

bool is_plausible(const FreeConstant& constant, double value) {
  return constant.most == 0 || (value >= constant.least && value <= constant.most);
}

TEST(Reproduce, ShowsEveryPublishedRow) {
  std::set<std::string> rows;
  for (const Reproduction& each : reproduced()) rows.emplace(each.figure.row);
  EXPECT_EQ(rows, (std::set<std::string>{
                      "mn1-infiniband-32", "mn1-10gbe-32", "mn1-10gbe-32-overlapped", "aws-p3-32",
                      "pfn-1024", "fujitsu-2048", "fujitsu-mlperf-2048", "gradientflow-alexnet-512",
                      "gradientflow-baseline-64", "facebook-256", "google-tpu-1024",
                      "google-tpu-1024-64k", "google-tpu-v2-pod", "tencent-2048", "sony-2176",
                      "sony-3456", "huawei-1024"}));
}

TEST(Reproduce, PredictionsAreWithinTheirBars) {
  std::set<std::string> held;
  for (const Reproduction& each : reproduced()) {
    const PublishedFigure& figure = each.figure;
    if (figure.calibrated() || figure.bar == 0) continue;
    EXPECT_LE(std::abs(each.error), figure.row == "gradientflow-alexnet-512" ? 0.15 : 0.10)
        << figure.row << " " << name(figure.metric);
    held.insert(std::string{figure.row} + " " + std::string{name(figure.metric)});
  }
  EXPECT_EQ(held,
            (std::set<std::string>{
                "mn1-10gbe-32-overlapped time_to_train_s", "aws-p3-32 efficiency",
                "pfn-1024 time_to_train_s", "pfn-1024 efficiency", "fujitsu-2048 time_to_train_s",
                "fujitsu-mlperf-2048 time_to_train_s", "gradientflow-alexnet-512 speedup"}));
}

// Solved anew, constants come out as they stand in the files, to the digits there. A figure that no
// plausible constant gives is named here.
TEST(Reproduce, CalibratedConstantsAreTheSolvedOnes) {
  constexpr double kDigits = 0.005;
  std::set<std::string> at_edge;
  const std::vector<Calibration> calibrations = calibrate().value();
  for (const Calibration& each : calibrations) {
    EXPECT_NEAR(each.in_use / each.solved, 1, kDigits) << each.figure.row;
    EXPECT_TRUE(is_plausible(each.figure.solved, each.in_use)) << each.figure.row;
    if (each.at_edge) at_edge.emplace(each.figure.row);
  }
  EXPECT_EQ(at_edge, (std::set<std::string>{"huawei-1024"}));
  for (const Reproduction& each : reproduced()) {
    if (!each.figure.calibrated() || at_edge.contains(std::string{each.figure.row})) continue;
    EXPECT_LE(std::abs(each.error), 0.01) << each.figure.row << " " << name(each.figure.metric);
  }
}

TEST(Reproduce, LinksAreWithinWhatIsPlausible) {
  for (const LinkConstant& constant : link_constants()) {
    const double value =
        constant.value(cluster::find_cluster(std::string{constant.cluster}).value());
    EXPECT_GE(value, constant.least) << constant.cluster << ", " << constant.name;
    EXPECT_LE(value, constant.most) << constant.cluster << ", " << constant.name;
  }
}

// A cluster that took another's speed would pass every calibrated row and be wrong by this much.
TEST(Reproduce, SpeedsThatAreSharedTooWidelyShow) {
  const std::vector<CrossChecked> checks = cross_checks().value();
  for (const CrossChecked& each : checks) {
    EXPECT_GT(std::abs(each.error), 0.15) << each.check.row << " with " << each.check.framework;
    EXPECT_NEAR(each.error, each.check.expected_error, 0.1)
        << each.check.row << " with " << each.check.framework;
  }
}

}  // namespace
}  // namespace sluice::cli
