// `sluice simulate` with thousands of ranks: bounded memory and processor time, repeatable results.
// docs/simulation.md has the times of a release build.
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

// Sanitizers are slow and reserve more memory than they use.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* kGibibyte = "";
constexpr int kPatience = 10;
#else
constexpr const char* kGibibyte = "ulimit -v 1048576; ";
constexpr int kPatience = 1;
#endif
constexpr int kDeadline = 200;  // generous, because other programs share the machine

std::string within(int processor_s) {
  return "ulimit -t " + std::to_string(processor_s * kPatience) + "; ";
}

const std::string kFujitsu =
    "SLUICE simulate --cluster abci --framework mxnet --recipe fujitsu-74s --json ";

TEST(SimulateScale, AStepOf2048RanksTakesSecondsAndLessThanAGibibyte) {
  for (const char* algorithm : {"hierarchical:ring", "ring"}) {
    const Outcome outcome = shell(
        kGibibyte + within(4) + kFujitsu + "--ranks 2048 --algorithm " + algorithm, kDeadline);
    EXPECT_EQ(outcome.status, 0) << algorithm << ": " << outcome.err;
  }
}

TEST(SimulateScale, JitterOf2048RanksRepeatsItself) {
  const std::string line =
      within(60) + kFujitsu + "--ranks 2048 --what-if jitter_us=500 jitter_seed=3";
  const Outcome first = shell(line, kDeadline);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(shell(line, kDeadline).out, first.out);
}

TEST(SimulateScale, ASweepTo4096RanksTakesLessThanHalfAMinute) {
  const Outcome outcome =
      shell(within(30) + kFujitsu + "--ranks 4,16,64,256,1024,2048,4096", kDeadline);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

}  // namespace
}  // namespace sluice::cli
