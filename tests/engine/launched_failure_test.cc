// `sluice launch` names the rank that the others blame, which is not always the one that ended
// first.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>

#include "base/format.h"
#include "sluice/communicator.h"
#include "tests/base/has.h"
#include "tests/cli/shell.h"

namespace sluice::engine {
namespace {

// The body of a launched rank. Only launch_and_end() runs it.
TEST(LaunchedRank, DISABLED_LosesRankTwo) {
  const char* const how = std::getenv("HOW_RANK_TWO_ENDS");
  if (how == nullptr) GTEST_SKIP();
  Communicator comm = Communicator::from_env();
  comm.set_deadline(std::chrono::seconds{1});
  comm.barrier();
  if (comm.rank() == 2 && std::string{how} == "stop") raise(SIGSTOP);
  if (comm.rank() == 2 && std::string{how} == "crash") std::abort();
  if (comm.rank() == 2 && std::string{how} == "leave") _exit(0);
  try {
    float value = 1;
    comm.all_reduce(std::span{&value, 1}).wait();
  } catch (const Error& error) {
    base::print(stderr, "{}\n", error.what());
    _exit(3);
  }
}

cli::Outcome launch_and_end(const std::string& how) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe").string();
  return cli::shell("HOW_RANK_TWO_ENDS='" + how + "' SLUICE launch -n 3 -- " + self +
                    " --gtest_also_run_disabled_tests "
                    "--gtest_filter=LaunchedRank.DISABLED_LosesRankTwo");
}

TEST(LaunchedFailure, AStoppedRankIsNamedAndNotTheRankThatEndedFirst) {
  const cli::Outcome outcome = launch_and_end("stop");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(base::has(outcome.err, "sluice launch: of 3 ranks, rank 2 failed first: rank "))
      << outcome.err;
  EXPECT_TRUE(base::has(outcome.err, ", which exited with status 3, reports: all_reduce #"))
      << outcome.err;
  EXPECT_TRUE(base::has(outcome.err, "rank 2 is stopped (process ")) << outcome.err;
  EXPECT_TRUE(base::has(outcome.err, " because of rank 2; stopping the others")) << outcome.err;
}

TEST(LaunchedFailure, ARankThatLeftIsNamedAlthoughItSucceeded) {
  const cli::Outcome outcome = launch_and_end("leave");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(base::has(outcome.err, "of 3 ranks, rank 2 failed first: rank ")) << outcome.err;
  EXPECT_TRUE(base::has(outcome.err, "rank 2 is lost (process ")) << outcome.err;
}

TEST(LaunchedFailure, ACrashedRankIsNamedByItsOwnEnd) {
  const cli::Outcome outcome = launch_and_end("crash");
  EXPECT_EQ(outcome.status, 3);
  EXPECT_TRUE(base::has(outcome.err, "rank 2 failed first: it was killed by SIGABRT"))
      << outcome.err;
}

}  // namespace
}  // namespace sluice::engine
