// `sluice simulate` with thousands of ranks: in bounded memory and time, and the same every time.
// The deadlines are loose, for machines that do other things too; docs/simulation.md has times.
#include <gtest/gtest.h>

#include <string>

#include "tests/cli/shell.h"

namespace sluice {
namespace {

// Sanitizers reserve far more than they use, and are slow.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* kGibibyte = "";
constexpr int kPatience = 10;
#else
constexpr const char* kGibibyte = "ulimit -v 1048576; ";
constexpr int kPatience = 1;
#endif

const std::string kFujitsu =
    "SLUICE simulate --cluster abci --framework mxnet --recipe fujitsu-74s --json ";

TEST(SimulateScale, AStepOf2048RanksTakesSecondsAndLessThanAGibibyte) {
  for (const char* algorithm : {"hierarchical:ring", "ring"}) {
    const Outcome outcome =
        shell(kGibibyte + kFujitsu + "--ranks 2048 --algorithm " + algorithm, 10 * kPatience);
    EXPECT_EQ(outcome.status, 0) << algorithm << ": " << outcome.err;
  }
}

TEST(SimulateScale, JitterOf2048RanksRepeatsItself) {
  const std::string line = kFujitsu + "--ranks 2048 --what-if jitter_us=500 jitter_seed=3";
  const Outcome first = shell(line, 60 * kPatience);
  ASSERT_EQ(first.status, 0) << first.err;
  EXPECT_EQ(shell(line, 60 * kPatience).out, first.out);
}

TEST(SimulateScale, ASweepTo4096RanksTakesLessThanHalfAMinute) {
  const Outcome outcome = shell(kFujitsu + "--ranks 4,16,64,256,1024,2048,4096", 30 * kPatience);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

}  // namespace
}  // namespace sluice
