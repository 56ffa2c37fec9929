// `sluice train` under kills and signals: no work is lost and no process stays behind.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "base/format.h"
#include "base/random.h"
#include "tests/base/has.h"
#include "tests/bootstrap/ending.h"
#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

using nlohmann::json;

// `ranks` prints the process ids of the ranks, which are children of $p.
const std::string kRanks =
    "ranks() { for c in $(cat /proc/$p/task/$p/children); do "
    "[ \"$(cat /proc/$c/comm 2>/dev/null)\" = sluice-train ] && echo $c; done; true; };";
// `saved N` waits until the run has N checkpoints.
const std::string kSaved =
    "saved() { while [ $(ls run/checkpoints 2>/dev/null | wc -l) -lt $1 ]; do sleep 0.02; done; };";
const std::string kRun = "--run run --set epochs=2 --set checkpoint_every=0.1 --json ";
const std::string kTrain = "SLUICE train --ranks 2 " + kRun;

std::string weights_of(const Outcome& outcome) {
  const json document = json::parse(outcome.out, nullptr, false);
  return document.is_object() && document.contains("weights_hash")
             ? document["weights_hash"].get<std::string>()
             : "none: " + outcome.out + outcome.err;
}

std::string weights_after(const std::string& command, int deadline_s = 60) {
  const TrainingFolder folder;
  return weights_of(shell(folder.in(command), deadline_s));
}

// Those of kTrain, trained once for all tests.
const std::string& undisturbed_weights() {
  static const std::string weights = weights_after(kTrain);
  return weights;
}

TEST(TrainFaults, RestartAfterAKilledRankGivesTheSameWeights) {
  const std::string& expected = undisturbed_weights();
  for (const char* const victim : {"head -n 1", "tail -n 1"}) {
    const TrainingFolder folder;
    const Outcome outcome = shell(folder.in(
        kRanks + kSaved + kTrain + "--max-restarts 3 >out & p=$!; saved 2; kill -KILL $(ranks | " +
        victim + "); wait $p; s=$?; cat out; exit $s"));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_TRUE(base::has(outcome.err, "sluice train: restart 1 of 3: rank ")) << outcome.err;
    EXPECT_TRUE(base::has(outcome.err, "resumed after step ")) << outcome.err;
    EXPECT_EQ(weights_of(outcome), expected);
  }
}

// Kills a random rank, at a random moment within 1.5 s of each start.
TEST(TrainFaults, TwentyKillsAtRandomMomentsGiveTheSameWeights) {
  constexpr int kKills = 20;
  constexpr int kDeadlineS = 200;
  const std::string longer =
      "SLUICE train --ranks 2 --run run --set epochs=16 --set checkpoint_every=0.2 --json ";
  const std::string expected = weights_after(longer, kDeadlineS);
  base::Random random{4};
  std::string kills;
  for (int i = 0; i < kKills; ++i)
    kills += base::format("strike {:.3f} {}; ", static_cast<double>(random.below(1500)) / 1000,
                          random.below(2) == 0 ? "head" : "tail");
  const TrainingFolder folder;
  const Outcome outcome = shell(
      folder.in(
          kRanks +
          "strike() { while kill -0 $p && { [ $(ranks | wc -l) -lt 2 ] || [ \"$(ranks)\" = "
          "\"$last\" ]; }; do sleep 0.01; done; sleep $1; last=\"$(ranks)\"; kill -KILL $(echo "
          "\"$last\" | $2 -n 1); };" +
          longer + base::format("--max-restarts {} >out & p=$!; ", kKills) + kills +
          "wait $p; s=$?; cat out; exit $s"),
      kDeadlineS);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_TRUE(
      base::has(outcome.err, base::format("sluice train: restart {0} of {0}: rank ", kKills)))
      << outcome.err;
  EXPECT_EQ(weights_of(outcome), expected);
}

TEST(TrainFaults, WithoutRestartsAKilledRankEndsTheRunWithAHintToResume) {
  const TrainingFolder folder;
  const Outcome outcome = shell(folder.in(kRanks + kSaved + kTrain +
                                          " >out & p=$!; saved 1; kill -KILL $(ranks | tail -n 1); "
                                          "wait $p"));
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_TRUE(
      base::has(outcome.err,
                "was killed by SIGKILL (Killed); continue with: sluice train --resume --run run"))
      << outcome.err;
}

TEST(TrainFaults, ResumingAfterCtrlCGivesTheSameWeights) {
  const std::string& expected = undisturbed_weights();
  const TrainingFolder folder;
  const Outcome stopped = shell(folder.in("set -m; " + kSaved + kTrain +
                                          " >out & p=$!; saved 1; kill -INT $p; wait $p; s=$?; cat "
                                          "out; exit $s"));
  EXPECT_EQ(stopped.status, 128 + 2) << stopped.err;
  EXPECT_EQ(json::parse(stopped.out)["end"], "signal") << stopped.out;
  const Outcome resumed = folder.train("--ranks 2 --run run --resume --json");
  EXPECT_EQ(resumed.status, 0) << resumed.err;
  EXPECT_TRUE(base::has(resumed.err, "resumed after step ")) << resumed.err;
  EXPECT_EQ(weights_of(resumed), expected);
}

TEST(TrainFaults, ResumingAcceptsMoreEpochsButNoOtherChangeOfTheRecipe) {
  const TrainingFolder folder;
  ASSERT_EQ(folder.train("--ranks 2 --run run --set epochs=0.2").status, 0);
  const Outcome refused = folder.train("--ranks 2 --run run --resume --set momentum=0.5");
  EXPECT_EQ(refused.status, 2) << refused.err;
  EXPECT_TRUE(base::has(refused.err, "momentum")) << refused.err;
  const Outcome longer = folder.train("--ranks 2 --run run --resume --set epochs=0.3 --json");
  EXPECT_EQ(longer.status, 0) << longer.err;
  EXPECT_GT(json::parse(longer.out)["epochs"], 0.29) << longer.out;
  const Outcome another = folder.train("--ranks 2 --run run --resume --set target=99 --json");
  EXPECT_EQ(another.status, 1) << another.err;
}

TEST(TrainFaults, AllRanksEndWhenTheCommandIsKilled) {
  const TrainingFolder folder;
  const Outcome outcome =
      shell(folder.in(kRanks + kSaved + kTrain +
                      " >/dev/null 2>&1 & p=$!; saved 1; ranks; kill -KILL $p; wait $p"));
  std::vector<pid_t> pids;
  std::istringstream stream{outcome.out};
  for (pid_t pid = 0; stream >> pid;) pids.push_back(pid);
  EXPECT_EQ(pids.size(), 2U) << outcome.out << outcome.err;
  EXPECT_TRUE(bootstrap::all_end(pids));
}

TEST(TrainFaults, SecondSignalKills) {
  const TrainingFolder folder;
  const Outcome outcome = shell(folder.in("set -m; " + kRanks + kSaved + kTrain +
                                          " >/dev/null & p=$!; saved 1; kill -STOP $(ranks); kill "
                                          "-INT $p; sleep 0.3; kill -INT $p; wait $p"));
  EXPECT_EQ(outcome.status, 128 + 2) << outcome.err;
}

TEST(TrainFaults, RestartsBySluiceLaunchResumeToo) {
  const std::string& expected = undisturbed_weights();
  const TrainingFolder folder;
  const Outcome outcome = shell(folder.in(
      kRanks + kSaved + "SLUICE launch -n 2 --no-prefix --max-restarts 2 -- SLUICE train " + kRun +
      " >out & p=$!; saved 2; kill -KILL $(ranks | head -n 1); wait $p; s=$?; cat out; exit $s"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(weights_of(outcome), expected);
}

// Each launcher sees its own ranks fail, and both must count the same restarts.
TEST(TrainFaults, RanksOfSeveralHostsReconnectAfterARestart) {
  const std::string& expected = undisturbed_weights();
  const TrainingFolder folder;
  const Outcome outcome = shell(folder.in(
      kRanks + kSaved +
      "export SLUICE_TOKEN=among-us; host() { exec SLUICE launch -n 1 --hosts 2 "
      "--host $1 --master "
      "127.0.0.1:21141 --no-prefix --max-restarts 2 -- SLUICE train " +
      kRun +
      "; }; host 1 >other 2>&1 & q=$!; host 0 >out & p=$!; saved 2; kill -KILL $(ranks); wait $p; "
      "s=$?; wait $q || s=9; cat other >&2; cat out; exit $s"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(weights_of(outcome), expected);
}

}  // namespace
}  // namespace sluice::cli
