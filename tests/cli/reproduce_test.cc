// Tests the bars of the predictions, the calibrations, and the file of published trainings.
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

bool is_plausible(const SolvedConstant& constant, double value) {
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
    held.insert(figure.row + " " + std::string{name(figure.metric)});
  }
  EXPECT_EQ(held,
            (std::set<std::string>{
                "mn1-10gbe-32-overlapped time_to_train_s", "aws-p3-32 efficiency",
                "pfn-1024 time_to_train_s", "pfn-1024 efficiency", "fujitsu-2048 time_to_train_s",
                "fujitsu-mlperf-2048 time_to_train_s", "gradientflow-alexnet-512 speedup"}));
}

// Solving the constants again gives the values in the files, to their number of digits. The test
// lists the figures that no plausible constant gives.
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
    if (!each.figure.calibrated() || at_edge.contains(each.figure.row)) continue;
    EXPECT_LE(std::abs(each.error), 0.01) << each.figure.row << " " << name(each.figure.metric);
  }
}

TEST(Reproduce, LinksHavePlausibleConstants) {
  for (const LinkConstant& constant : published_trainings().links) {
    const double value = constant.value(cluster::find_cluster(constant.cluster).value());
    EXPECT_GE(value, constant.least) << constant.cluster << ", " << constant.name;
    EXPECT_LE(value, constant.most) << constant.cluster << ", " << constant.name;
  }
}

// With the speed of another framework, a cluster is wrong by this much.
TEST(Reproduce, SharedSpeedsShowAsErrors) {
  const std::vector<CrossChecked> checks = cross_checks().value();
  for (const CrossChecked& each : checks) {
    EXPECT_GT(std::abs(each.error), 0.15) << each.check.row << " with " << each.check.framework;
    EXPECT_NEAR(each.error, each.check.expected_error, 0.1)
        << each.check.row << " with " << each.check.framework;
  }
}

// A valid file of 16 lines.
const std::string kTrainings = R"([[run]]
row = "a"
cluster = "abci"
ranks = 8
recipe = "fujitsu-74s"
[[run.figure]]
metric = "speedup"
published = 7
source = "[R] abstract"
solved = "speed"
constant = "V100"
[[cross_check]]
row = "a"
framework = "mxnet"
published = 224
expected_error = -0.5
)";

std::string error_with(const std::string& from, const std::string& to) {
  std::string text = kTrainings;
  text.replace(text.find(from), from.size(), to);
  return parse_published(text, "t.toml").status().message();
}

TEST(PublishedTrainings, AreReadFromToml) {
  const PublishedTrainings all = parse_published(kTrainings, "t.toml").value();
  EXPECT_EQ(all.run_of("a").cluster, "abci");
  EXPECT_EQ(all.run_of("a").ranks, 8);
  ASSERT_EQ(all.figures.size(), 1U);
  EXPECT_EQ(all.figures[0].row, "a");
  EXPECT_EQ(all.figures[0].metric, Metric::Speedup);
  EXPECT_EQ(all.figures[0].solved.kind, Constant::Speed);
  EXPECT_EQ(all.figures[0].source, "[R] abstract");
  EXPECT_EQ(all.cross_checks[0].expected_error, -0.5);
  EXPECT_EQ(published_trainings().runs.size(), 17U);
  EXPECT_EQ(published_trainings().figures.size(), 23U);
}

TEST(PublishedTrainings, ErrorsNameTheLine) {
  EXPECT_EQ(error_with("ranks = 8", "ranks = 0"),
            "t.toml, line 4: run.ranks must be a number from 1 to 8192");
  EXPECT_EQ(error_with("recipe", "recipes"), "t.toml, line 1: run.recipe is missing");
  EXPECT_EQ(error_with("speedup", "speed"),
            "t.toml, line 7: run.figure.metric must be one of time_to_train_s, images_per_s, "
            "speedup, efficiency");
  EXPECT_EQ(error_with("[R] abstract", "read it"),
            "t.toml, line 9: run.figure.source must begin with [S], [R], [M]");
  EXPECT_EQ(error_with("\"speed\"", "\"luck\""),
            "t.toml, line 10: run.figure.solved must be one of speed, start_up, "
            "link_efficiency, spread");
  EXPECT_EQ(error_with("constant = \"V100\"", "from = \"the same\""),
            "t.toml, line 6: run.figure.constant is missing");
  EXPECT_EQ(error_with("row = \"a\"\nframework", "row = \"b\"\nframework"),
            "t.toml, line 13: cross_check.row names a run that does not exist");
  EXPECT_EQ(error_with("[[cross_check]]", "[[link]]"), "t.toml, line 12: link.cluster is missing");
}

}  // namespace
}  // namespace sluice::cli
