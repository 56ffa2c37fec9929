// `sluice launch --max-restarts` starts all ranks again after a crash, and only after a crash.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "bootstrap/launch/launch.h"
#include "tests/base/has.h"
#include "tests/bootstrap/ending.h"
#include "tests/cli/shell.h"

namespace sluice::bootstrap {
namespace {

// Runs `sluice launch OPTIONS -- bash -c PROGRAM`.
cli::Outcome launched(const std::string& options, const std::string& program) {
  return cli::shell("SLUICE launch --no-prefix " + options + " -- bash -c '" + program + "'");
}

std::ptrdiff_t count_of_lines(const std::string& text) {
  return std::count(text.begin(), text.end(), '\n');
}

TEST(Restarts, AllRanksStartAgainUntilTheySucceed) {
  const cli::Outcome outcome = launched(
      "-n 2 --max-restarts 3",
      "echo $SLUICE_RANK:$SLUICE_RESTARTS; if [ $SLUICE_RANK$SLUICE_RESTARTS = 10 ]; then exit 7; "
      "fi; if [ $SLUICE_RANK$SLUICE_RESTARTS = 01 ]; then kill -KILL $$; fi; "
      "if [ $SLUICE_RESTARTS != 2 ]; then sleep 100; fi");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream stream{outcome.out};
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  // A rank may be stopped before it has written.
  for (const std::string line : {"0:1", "0:2", "1:0", "1:2"})
    EXPECT_EQ(std::count(lines.begin(), lines.end(), line), 1) << line << "\n" << outcome.out;
  EXPECT_TRUE(
      base::has(outcome.err,
                "sluice launch: restart 1 of 3: rank 1 exited with status 7; all 2 ranks start "
                "again\n"))
      << outcome.err;
  EXPECT_TRUE(
      base::has(outcome.err, "restart 2 of 3: rank 0 was killed by SIGKILL (Killed); all 2"))
      << outcome.err;
  EXPECT_FALSE(base::has(outcome.err, "failed first")) << outcome.err;
}

TEST(Restarts, EndAtTheLimit) {
  const cli::Outcome outcome = launched("-n 1 --max-restarts 2", "echo up; exit 9");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(count_of_lines(outcome.out), 3);
  EXPECT_TRUE(
      base::has(outcome.err, "rank 0 failed first: it exited with status 9 (after 2 restarts)"))
      << outcome.err;
}

TEST(Restarts, AreOffByDefault) {
  const cli::Outcome outcome = launched("-n 1", "echo up; exit 9");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_EQ(outcome.out, "up\n");
}

TEST(Restarts, DoNotFollowWrongInput) {
  const cli::Outcome outcome = launched("-n 2 --max-restarts 5", "echo up >&2; exit 2");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_FALSE(base::has(outcome.err, "restart ")) << outcome.err;
}

TEST(Restarts, DoNotFollowATerminationSignal) {
  const cli::Outcome outcome = cli::shell(
      "out=$(mktemp); SLUICE launch -n 2 --max-restarts 5 -- bash -c 'trap \"exit 9\" TERM; echo "
      "up; while :; do sleep 0.01; done' >$out & p=$!; while [ $(wc -l <$out) -lt 2 ]; do sleep "
      "0.01; done; kill -TERM $p; wait $p; s=$?; cat $out; rm $out; exit $s");
  EXPECT_EQ(outcome.status, 128 + 15) << outcome.err;
  EXPECT_EQ(count_of_lines(outcome.out), 2) << outcome.out;
  EXPECT_FALSE(base::has(outcome.err, "restart ")) << outcome.err;
}

TEST(Restarts, HaveAnotherJobNameAndTheFirstStartTime) {
  const cli::Outcome outcome = launched(
      "-n 1 --max-restarts 1", "echo $SLUICE_JOB $SLUICE_STARTED; exit $((1 - $SLUICE_RESTARTS))");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::istringstream stream{outcome.out};
  std::string first_job;
  std::string first_time;
  std::string second_job;
  std::string second_time;
  stream >> first_job >> first_time >> second_job >> second_time;
  EXPECT_NE(first_job, second_job);
  EXPECT_EQ(first_time, second_time);
  EXPECT_GT(first_time.size(), 18U) << "nanoseconds since 1970";
}

TEST(Restarts, NoProcessOfTheFailedAttemptSurvives) {
  const cli::Outcome outcome =
      launched("-n 2 --max-restarts 1",
               "if [ $SLUICE_RESTARTS = 1 ]; then exit 0; fi; sleep 100 & echo "
               "$$ $!; if [ $SLUICE_RANK = 1 ]; "
               "then sleep 0.2; exit 1; fi; wait");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  std::vector<pid_t> pids;
  std::istringstream stream{outcome.out};
  for (pid_t pid = 0; stream >> pid;) pids.push_back(pid);
  EXPECT_EQ(pids.size(), 4U) << outcome.out;
  EXPECT_TRUE(all_end(pids));
}

TEST(Restarts, ShareOneDeadline) {
  const cli::Outcome outcome =
      launched("-n 1 --max-restarts 1000 --deadline 1s", "sleep 0.4; exit 1");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_FALSE(base::has(outcome.err, "restart 5 ")) << outcome.err;
}

TEST(Restarts, MustBeAWholeNumber) {
  EXPECT_EQ(cli::shell("SLUICE launch -n 1 --max-restarts often -- true").status, 2);
  EXPECT_EQ(cli::shell("SLUICE launch -n 1 --max-restarts -1 -- true").status, 2);
}

TEST(Restarts, FollowOnlyACrash) {
  const LaunchOptions options{.max_restarts = 2, .final_statuses = {1}};
  LaunchOutcome crashed;
  crashed.first_failure = {.rank = 1, .how = "was killed by SIGKILL (Killed)", .status = -1};
  EXPECT_TRUE(should_restart(options, crashed));
  EXPECT_FALSE(should_restart({}, crashed)) << "none are allowed";
  LaunchOutcome at_limit = crashed;
  at_limit.restarts = 2;
  EXPECT_FALSE(should_restart(options, at_limit));
  LaunchOutcome interrupted = crashed;
  interrupted.signal = SIGINT;
  EXPECT_FALSE(should_restart(options, interrupted));
  LaunchOutcome unread = crashed;
  unread.output_lost = true;
  EXPECT_FALSE(should_restart(options, unread));
  LaunchOutcome final_status = crashed;
  final_status.first_failure->status = 1;
  EXPECT_FALSE(should_restart(options, final_status));
  LaunchOutcome wrong_input = crashed;
  wrong_input.first_failure->status = 2;
  EXPECT_FALSE(should_restart(options, wrong_input));
  EXPECT_FALSE(should_restart(options, {}));
}

}  // namespace
}  // namespace sluice::bootstrap
