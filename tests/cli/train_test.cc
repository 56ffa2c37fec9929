// `sluice train`: its results, output and files.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/base/has.h"
#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

TEST(Train, TrainsEvaluatesAndReportsTheResult) {
  const TrainingFolder folder;
  const Outcome outcome = folder.train("--ranks 2 --run run --set epochs=0.5 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const json summary = json::parse(outcome.out);
  EXPECT_EQ(summary["ranks"], 2);
  EXPECT_GT(summary["images_per_s"], 10.0);
  EXPECT_GT(summary["accuracy"], 5.0);
  EXPECT_GT(summary["startup_s"], 0.0);
  EXPECT_GT(summary["total_s"], summary["startup_s"]);
  EXPECT_GE(summary["exposed_comm_fraction"], 0.0);
  EXPECT_EQ(summary["run"], "run");
  for (const char* const name : {"run.json", "metrics.jsonl", "timeline.json", "checkpoints"})
    EXPECT_TRUE(std::filesystem::exists(folder.path() / "run" / name)) << name;

  const Outcome evaluated = folder.train("--ranks 2 --evaluate run --json");
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  EXPECT_EQ(json::parse(evaluated.out)["accuracy"], summary["accuracy"]);
  EXPECT_EQ(folder.train("--ranks 1 --evaluate run --target 100").status, 1);
}

TEST(Train, StartsFromSavedWeights) {
  const TrainingFolder folder;
  const Outcome first = folder.train("--ranks 2 --run first --set epochs=0.5 --json");
  ASSERT_EQ(first.status, 0) << first.err;
  // One step with a tiny learning rate: it evaluates the weights that it started from.
  const Outcome second = folder.train(
      "--ranks 1 --run second --init first/weights.pt --set rate=1e-20 --set epochs=0.01 --json");
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(json::parse(second.out)["accuracy"], json::parse(first.out)["accuracy"]);
  const Outcome wrong = folder.train("--ranks 2 --run third --init nothing.pt --steps 1");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(base::has(wrong.err, "nothing.pt")) << wrong.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "third" / "run.json"));
}

TEST(Train, NeverOverwritesARun) {
  const TrainingFolder folder;
  ASSERT_EQ(folder.train("--ranks 1 --run run --steps 5").status, 0);
  const Outcome again = folder.train("--ranks 1 --run run --steps 5");
  EXPECT_EQ(again.status, 2);
  EXPECT_TRUE(base::has(again.err, "\"run\" holds a run already")) << again.err;
  // A rank of another launcher must refuse, too.
  const Outcome as_rank =
      shell(folder.in("SLUICE launch -n 2 -- SLUICE train --run run --steps 5"));
  EXPECT_NE(as_rank.status, 0);
  EXPECT_TRUE(base::has(as_rank.err, "holds a run already")) << as_rank.err;
}

TEST(Train, MakesAFreshRunFolderUnderAnyLauncher) {
  const TrainingFolder folder;
  const Outcome own = folder.train("--ranks 2 --steps 3 --json");
  ASSERT_EQ(own.status, 0) << own.err;
  const Outcome launched =
      shell(folder.in("SLUICE launch -n 2 --no-prefix -- SLUICE train --steps 3 --json"));
  ASSERT_EQ(launched.status, 0) << launched.err;
  const std::string first = json::parse(own.out)["run"];
  const std::string second = json::parse(launched.out)["run"];
  EXPECT_TRUE(first.starts_with("runs/demo-")) << first;
  EXPECT_TRUE(second.starts_with("runs/demo-")) << second;
  EXPECT_NE(first, second);
  EXPECT_EQ(json::parse(own.out)["weights_hash"], json::parse(launched.out)["weights_hash"])
      << "the launcher does not change the weights";
}

TEST(Train, WrongInputIsOneSentenceAndLeavesNoFolder) {
  const TrainingFolder folder;
  const Outcome outcome = folder.train("--ranks 2 --recipe demo --data mnist:nowhere");
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_TRUE(base::has(outcome.err, "nowhere")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "runs") &&
               !std::filesystem::is_empty(folder.path() / "runs"));
}

TEST(Train, MissedTargetExitsWithOne) {
  const TrainingFolder folder;
  const Outcome outcome = folder.train("--ranks 2 --run run --set epochs=0.2 --target 99.9");
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_TRUE(base::has(outcome.out, "99.90% NOT reached")) << outcome.out;
  EXPECT_FALSE(base::has(outcome.err, "failed")) << outcome.err;
}

TEST(Train, PrintsLinesToFilesAndABarToATerminal) {
  const TrainingFolder folder;
  const Outcome lines = folder.train("--ranks 2 --run a --set epochs=0.3");
  EXPECT_FALSE(base::has(lines.err, "\r")) << lines.err;
  EXPECT_TRUE(base::has(lines.err, "accuracy ")) << lines.err;
  const Outcome terminal =
      shell(folder.in("command -v script >/dev/null || exit 77; script -qec 'stty cols 60; SLUICE "
                      "train --ranks 2 --run b --set epochs=0.3' /dev/null"));
  if (terminal.status == 77) GTEST_SKIP() << "no script(1)";
  EXPECT_EQ(terminal.status, 0) << terminal.out;
  EXPECT_TRUE(base::has(terminal.out, "\r\033[Kepoch 1/1")) << terminal.out;
  EXPECT_TRUE(base::has(terminal.out, "images/s")) << terminal.out;
}

TEST(Train, BenchMeasuresScaling) {
  const TrainingFolder folder;
  const Outcome outcome = shell(folder.in(
      "SLUICE bench train --ranks 1,2 --batch 8 --steps 20 --repeats 1 --json 2>/dev/null"));
  ASSERT_EQ(outcome.status, 0) << outcome.out;
  const json rows = json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 2U);
  for (const auto& row : rows) {
    EXPECT_EQ(row["batch"], 8);
    EXPECT_GT(row["images_per_s"], 10.0);
  }
  EXPECT_EQ(rows[0]["efficiency"], 1.0);
  EXPECT_NEAR(rows[1]["efficiency"],
              rows[1]["images_per_s"].get<double>() / (2 * rows[0]["images_per_s"].get<double>()),
              1e-9);
  EXPECT_TRUE(std::filesystem::is_empty(folder.path())) << "a benchmark writes no files";
}

}  // namespace
}  // namespace sluice::cli
