// `sluice train` as a user meets it: what it trains, shows and leaves behind.
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

TEST(Train, TrainsEvaluatesAndSaysWhatItCameTo) {
  const TrainingPlace place;
  const Outcome outcome = place.train("--ranks 2 --run run --set epochs=0.5 --json");
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
    EXPECT_TRUE(std::filesystem::exists(place.folder() / "run" / name)) << name;

  const Outcome evaluated = place.train("--ranks 2 --evaluate run --json");
  ASSERT_EQ(evaluated.status, 0) << evaluated.err;
  EXPECT_EQ(json::parse(evaluated.out)["accuracy"], summary["accuracy"]);
  EXPECT_EQ(place.train("--ranks 1 --evaluate run --target 100").status, 1);
}

TEST(Train, StartsFromSavedWeights) {
  const TrainingPlace place;
  const Outcome first = place.train("--ranks 2 --run first --set epochs=0.5 --json");
  ASSERT_EQ(first.status, 0) << first.err;
  // A step at no rate to speak of: what it evaluates is what it started from.
  const Outcome second = place.train(
      "--ranks 1 --run second --init first/weights.pt --set rate=1e-20 --set epochs=0.01 --json");
  ASSERT_EQ(second.status, 0) << second.err;
  EXPECT_EQ(json::parse(second.out)["accuracy"], json::parse(first.out)["accuracy"]);
  const Outcome wrong = place.train("--ranks 2 --run third --init nothing.pt --steps 1");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(base::has(wrong.err, "nothing.pt")) << wrong.err;
  EXPECT_FALSE(std::filesystem::exists(place.folder() / "third" / "run.json"));
}

TEST(Train, ARunIsNeverWrittenOver) {
  const TrainingPlace place;
  ASSERT_EQ(place.train("--ranks 1 --run run --steps 5").status, 0);
  const Outcome again = place.train("--ranks 1 --run run --steps 5");
  EXPECT_EQ(again.status, 2);
  EXPECT_TRUE(base::has(again.err, "\"run\" holds a run already")) << again.err;
  // As a rank of somebody else's, too.
  const Outcome as_rank = shell(place.in("SLUICE launch -n 2 -- SLUICE train --run run --steps 5"));
  EXPECT_NE(as_rank.status, 0);
  EXPECT_TRUE(base::has(as_rank.err, "holds a run already")) << as_rank.err;
}

TEST(Train, WithoutRunAFreshFolderIsMadeUnderAnyLauncher) {
  const TrainingPlace place;
  const Outcome own = place.train("--ranks 2 --steps 3 --json");
  ASSERT_EQ(own.status, 0) << own.err;
  const Outcome launched =
      shell(place.in("SLUICE launch -n 2 --no-prefix -- SLUICE train --steps 3 --json"));
  ASSERT_EQ(launched.status, 0) << launched.err;
  const std::string first = json::parse(own.out)["run"];
  const std::string second = json::parse(launched.out)["run"];
  EXPECT_TRUE(first.starts_with("runs/demo-")) << first;
  EXPECT_TRUE(second.starts_with("runs/demo-")) << second;
  EXPECT_NE(first, second);
  EXPECT_EQ(json::parse(own.out)["weights_hash"], json::parse(launched.out)["weights_hash"])
      << "who started the ranks does not matter";
}

TEST(Train, AWrongInputLeavesNoFolderAndIsOneSentence) {
  const TrainingPlace place;
  const Outcome outcome = place.train("--ranks 2 --recipe demo --data mnist:nowhere");
  EXPECT_EQ(outcome.status, 2) << outcome.err;
  EXPECT_TRUE(base::has(outcome.err, "nowhere")) << outcome.err;
  EXPECT_EQ(std::count(outcome.err.begin(), outcome.err.end(), '\n'), 1) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(place.folder() / "runs") &&
               !std::filesystem::is_empty(place.folder() / "runs"));
}

TEST(Train, ATargetThatIsNotMetIsANo) {
  const TrainingPlace place;
  const Outcome outcome = place.train("--ranks 2 --run run --set epochs=0.2 --target 99.9");
  EXPECT_EQ(outcome.status, 1) << outcome.err;
  EXPECT_TRUE(base::has(outcome.out, "99.90% NOT reached")) << outcome.out;
  EXPECT_FALSE(base::has(outcome.err, "failed")) << outcome.err;
}

TEST(Train, LinesAreForFilesAndABarIsForATerminal) {
  const TrainingPlace place;
  const Outcome lines = place.train("--ranks 2 --run a --set epochs=0.3");
  EXPECT_FALSE(base::has(lines.err, "\r")) << lines.err;
  EXPECT_TRUE(base::has(lines.err, "accuracy ")) << lines.err;
  const Outcome terminal =
      shell(place.in("command -v script >/dev/null || exit 77; script -qec 'stty cols 60; SLUICE "
                     "train --ranks 2 --run b --set epochs=0.3' /dev/null"));
  if (terminal.status == 77) GTEST_SKIP() << "no script(1)";
  EXPECT_EQ(terminal.status, 0) << terminal.out;
  EXPECT_TRUE(base::has(terminal.out, "\r\033[Kepoch 1/1")) << terminal.out;
  EXPECT_TRUE(base::has(terminal.out, "images/s")) << terminal.out;
}

TEST(Train, BenchMeasuresScaling) {
  const TrainingPlace place;
  const Outcome outcome = shell(place.in(
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
  EXPECT_TRUE(std::filesystem::is_empty(place.folder())) << "a measurement keeps nothing";
}

}  // namespace
}  // namespace sluice::cli
