// `sluice launch` under signals: passed on, and no rank outlives it, however it ends.
#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "tests/bootstrap/ending.h"
#include "tests/cli/shell.h"

namespace sluice::bootstrap {
namespace {

std::vector<pid_t> pids_in(const std::string& text) {
  std::vector<pid_t> pids;
  std::istringstream stream{text};
  for (pid_t pid = 0; stream >> pid;) pids.push_back(pid);
  return pids;
}

// Starts the command with its output in $out, waits until that has `lines` lines, sends it the
// signal.
std::string signalled(const std::string& command, int lines, const std::string& signal) {
  return "out=$(mktemp); SLUICE " + command + " >$out & p=$!; while [ $(wc -l <$out) -lt " +
         std::to_string(lines) + " ]; do sleep 0.01; done; kill -" + signal +
         " $p; wait $p; s=$?; cat $out; rm $out; exit $s";
}

TEST(LaunchSignals, ArePassedOnAndBecomeTheExitStatus) {
  for (const auto& [name, number] :
       {std::pair{"INT", 2}, std::pair{"TERM", 15}, std::pair{"HUP", 1}}) {
    // A shell starts background jobs with SIGINT ignored; bash under `set -m` does not.
    const cli::Outcome outcome = cli::shell(
        "set -m; " + signalled(std::string{"launch -n 2 -- bash -c 'trap \"echo got; exit 0\" "} +
                                   name + "; echo up; while :; do sleep 0.01; done'",
                               2, name));
    EXPECT_EQ(outcome.status, 128 + number) << outcome.err;
    EXPECT_NE(outcome.out.find("[0] got\n"), std::string::npos) << name << outcome.out;
    EXPECT_NE(outcome.out.find("[1] got\n"), std::string::npos) << name << outcome.out;
    EXPECT_EQ(outcome.err.find("failed"), std::string::npos) << outcome.err;
  }
}

TEST(LaunchSignals, RanksHaveAllTheTimeTheyNeedAfterTheFirst) {
  const cli::Outcome outcome = cli::shell(
      signalled("launch -n 2 -- bash -c 'trap \"sleep 1; echo saved $SLUICE_RANK; exit 143\" TERM; "
                "if [ $SLUICE_RANK = 1 ]; then trap \"exit 143\" TERM; fi; echo up; while :; do "
                "sleep 0.01; done'",
                2, "TERM"));
  EXPECT_EQ(outcome.status, 128 + 15);
  EXPECT_NE(outcome.out.find("[0] saved 0\n"), std::string::npos) << outcome.out;
}

TEST(LaunchSignals, ASecondOneKills) {
  const cli::Outcome outcome = cli::shell(
      "out=$(mktemp); SLUICE launch -n 2 --no-prefix -- bash -c 'trap \"echo no\" TERM; echo up; "
      "while :; do sleep 0.01; done' >$out & p=$!;"
      "while [ $(grep -c up $out) -lt 2 ]; do sleep 0.01; done; kill -TERM $p;"
      "while [ $(grep -c no $out) -lt 2 ]; do sleep 0.01; done; kill -TERM $p; wait $p; s=$?; rm "
      "$out; exit $s",
      30);
  EXPECT_EQ(outcome.status, 128 + 15) << outcome.err;
}

TEST(LaunchSignals, UserSignalsArePassedOnAndEndNothing) {
  const cli::Outcome outcome = cli::shell(
      signalled("launch -n 2 -- bash -c 'trap \"echo got; exit 0\" USR1; echo up; while :; "
                "do sleep 0.01; done'",
                2, "USR1"));
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("[1] got\n"), std::string::npos) << outcome.out;
}

TEST(LaunchSignals, NoRankNorWhatItStartedSurvivesAKilledLauncher) {
  // Each rank is a shell that started a sleep, in its own way.
  const cli::Outcome outcome = cli::shell(
      signalled("launch -n 3 --no-prefix -- bash -c 'sleep 1000 & echo $$ $!; trap \"\" TERM "
                "HUP; wait; wait'",
                3, "KILL"));
  const std::vector<pid_t> pids = pids_in(outcome.out);
  ASSERT_EQ(pids.size(), 6U) << outcome.out << outcome.err;
  EXPECT_TRUE(all_end(pids));
}

TEST(LaunchSignals, NoRankSurvivesWhenNobodyReadsTheOutput) {
  const cli::Outcome outcome = cli::shell(
      "SLUICE launch -n 2 --no-prefix -- bash -c 'while :; do echo $$; sleep 0.01; done' | head -n "
      "20; exit ${PIPESTATUS[0]}",
      30);
  EXPECT_EQ(outcome.status, 3) << outcome.err;
  EXPECT_TRUE(all_end(pids_in(outcome.out)));
}

}  // namespace
}  // namespace sluice::bootstrap
