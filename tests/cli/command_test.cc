// The built command: its output and exit status.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

TEST(Command, RefusesBadInputWithOneSentence) {
  expect_refused("SLUICE verify --algorithm rign",
                 "there is no algorithm \"rign\": did you mean ring?");
  expect_refused("SLUICE verify --ranks 0",
                 "ranks must be a whole number from 1 to 65536, not \"0\"");
  expect_refused("SLUICE verify --ranks -4",
                 "ranks must be a whole number from 1 to 65536, not \"-4\"");
  expect_refused("SLUICE verify --algorithm torus --ranks 9 --grid 2x4",
                 "grid 4+4 has 8 ranks, not 9");
  expect_refused("SLUICE verify --ranks 9 --grid 2x4", "grid 4+4 has 8 ranks, not 9");
  expect_refused("SLUICE verify --algorithm torus --grid 3+5", "torus needs rows of equal length");
  expect_refused("SLUICE verify --grid 0x4", "nodes of a grid must be a whole number");
  expect_refused("SLUICE verify --collective allreduce", "did you mean all_reduce?");
  expect_refused("SLUICE verify --algorithm ring --collective broadcast",
                 "ring does not support broadcast");
  expect_refused("SLUICE verify --algorithm ring --ranks 65536", "ask for fewer ranks");
  expect_refused("SLUICE verify --segments 3", "segments must be powers of two, not 3");
  expect_refused("SLUICE verify --file /nonexistent/file", "cannot be read");
  expect_refused("SLUICE verify --file /tmp", "is a folder");
  expect_refused("SLUICE explain --ranks 4", "--bytes is required");
  expect_refused("SLUICE explain --bytes 1M", "give --ranks");
  expect_refused("SLUICE explain --ranks 4 --bytes lots", "\"lots\" is not a size");
  expect_refused("SLUICE explain --ranks 0 --bytes 1M", "--ranks must be a whole number from 1");
  expect_refused("SLUICE explain --ranks 4 --bytes 1M --cluster abcj", "did you mean abci?");
  expect_refused("SLUICE explain --ranks 40 --bytes 1M --schedule --draw", "too wide");
  expect_refused("SLUICE explain --ranks 4 --bytes 1M --draw", "--draw needs --schedule");
  expect_refused("SLUICE explain --ranks 2 --bytes 1 --collective reduce --root 2",
                 "root 2 is not one of the 2 ranks");
  expect_refused("SLUICE explain --ranks 2 --bytes 1M --sparsity 1",
                 "--sparsity must be at least 0 and less than 1");
  expect_refused("SLUICE verfy", "there is no command \"verfy\": did you mean verify?");
  expect_refused("SLUICE verify --bogus", "--bogus");
  expect_refused("SLUICE", "required");
}

TEST(Command, VerifyPrintsProofsAsJson) {
  const Outcome outcome =
      shell("SLUICE verify --algorithm ring --collective all_reduce --ranks 4 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["algorithm"], "ring");
  EXPECT_EQ(rows[0]["collective"], "all_reduce");
  EXPECT_EQ(rows[0]["ranks"], 4);
  EXPECT_TRUE(rows[0]["grid"].is_null());
  EXPECT_EQ(rows[0]["proven"], true);
  EXPECT_EQ(rows[0]["reason"], "");
  EXPECT_EQ(rows[0]["steps"], 6);
  EXPECT_DOUBLE_EQ(rows[0]["bytes_factor"], 1.5);
}

TEST(Command, VerifyAcceptsRangesOfGridsAndRaggedGrids) {
  const Outcome outcome =
      shell("SLUICE verify --algorithm hierarchical:ring --grid 1-3x1-4,3+5,1+7+2 --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto rows = nlohmann::json::parse(outcome.out);
  ASSERT_EQ(rows.size(), 14U);
  EXPECT_EQ(rows[12]["grid"], "3+5");
  EXPECT_EQ(rows[5]["grid"], "2x2");
}

TEST(Command, VerifyReadsTheOutputOfExplain) {
  for (const char* algorithm :
       {"ring", "recursive_doubling", "halving_doubling", "halving_doubling:far", "torus",
        "double_tree", "hierarchical", "hierarchical:ring", "direct"}) {
    const Outcome outcome =
        shell(std::string{"set -o pipefail; SLUICE explain --ranks 6 --bytes 1M --schedule "} +
              "--algorithm " + algorithm + " | SLUICE verify --file - --json");
    ASSERT_EQ(outcome.status, 0) << algorithm << outcome.err << outcome.out;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)[0]["proven"], true) << algorithm;
  }
}

TEST(Command, WrongScheduleExitsWithOneAndTruncatedScheduleWithTwo) {
  const std::string path = testing::TempDir() + "ring.txt";
  ASSERT_EQ(
      shell("SLUICE explain --ranks 4 --bytes 1M --algorithm ring --schedule >" + path).status, 0);
  // Without its hash line a file may be edited; this edit sends a chunk that its receiver does not
  // expect.
  const Outcome wrong = shell(
      "sed -e '/^hash/d' -e 's/^rank 0 step 1 send buffer.3./rank 0 step 1 send buffer[1]/' " +
      path + " | SLUICE verify --file -");
  EXPECT_EQ(wrong.status, 1) << wrong.out << wrong.err;
  EXPECT_NE(wrong.out.find("NOT PROVEN"), std::string::npos) << wrong.out;
  EXPECT_NE(wrong.out.find("rank 1, step 1, chunk 3"), std::string::npos) << wrong.out;
  const Outcome torn = shell("head -n 20 " + path + " | SLUICE verify --file -");
  EXPECT_EQ(torn.status, 2) << torn.out << torn.err;
  EXPECT_NE(torn.err.find("line"), std::string::npos) << torn.err;
}

// An address space of 1 GiB: the command must not keep its input. (Sanitizers reserve far more.)
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* kLimit = "";
#else
constexpr const char* kLimit = "ulimit -v 1048576; ";
#endif

TEST(Command, RefusesAGibibyteOfGarbageInBoundedMemory) {
  for (const char* garbage :
       {"head -c 1G /dev/zero", "head -c 1G /dev/urandom", "yes rank 0 step 1 | head -c 1G",
        "(printf 'sluice-schedule 1\\nalgorithm a\\ncollective all_reduce\\nranks 2\\nchunks "
        "2\\n'; "
        "yes 'rank 0 step 1 send buffer[0] to 1' | head -c 1G)"}) {
    const Outcome outcome =
        shell(std::string{kLimit} + garbage + " 2>/dev/null | SLUICE verify --file -", 120);
    EXPECT_EQ(outcome.status, 2) << garbage << outcome.err;
    EXPECT_NE(outcome.err.find("line"), std::string::npos) << garbage << outcome.err;
  }
}

TEST(Command, ExplainShowsTheChoiceAndTheSizesWhereItChanges) {
  const Outcome outcome = shell("SLUICE explain --ranks 2048 --bytes 51M --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["chosen"], json["candidates"][0]["algorithm"]);
  double last = 0;
  for (const auto& candidate : json["candidates"]) {
    EXPECT_GE(candidate["predicted_us"], last);
    last = candidate["predicted_us"];
  }
  EXPECT_GE(json["flips"].size(), 2U);
  const Outcome text = shell("SLUICE explain --ranks 2048 --bytes 51M --cluster abci");
  EXPECT_NE(text.out.find("Chosen: "), std::string::npos);
  EXPECT_NE(text.out.find("Choice by size:"), std::string::npos);
}

// Sparse gradients pay for AlexNet on 512 ranks with links of 56 Gbit/s. They do not pay for a few
// kilobytes, which cost latency alone.
TEST(Command, ExplainSaysWhetherSparseGradientsPay) {
  const Outcome large =
      shell("SLUICE explain --ranks 512 --bytes 122M --cluster sensetime-v --json");
  ASSERT_EQ(large.status, 0) << large.err;
  const auto sparse = nlohmann::json::parse(large.out)["sparse"];
  EXPECT_EQ(sparse["pays"], true);
  // 15% of 976 chunks of 128 KiB, rounded up, and a norm of 4 bytes for each of the 976.
  EXPECT_EQ(sparse["sent_bytes"], 147 * 128 * 1024 + 976 * 4);
  EXPECT_LT(sparse["predicted_us"], sparse["dense_us"]);
  const Outcome small = shell("SLUICE explain --ranks 512 --bytes 1K --cluster sensetime-v");
  EXPECT_NE(small.out.find("Sparse gradients do not pay here"), std::string::npos) << small.out;
}

TEST(Command, DrawsEverySmallSchedule) {
  const Outcome outcome =
      shell("SLUICE explain --ranks 4 --bytes 1M --algorithm ring --schedule --draw");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("step 6"), std::string::npos);
  EXPECT_NE(outcome.out.find("3 → 1"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("████"), std::string::npos) << outcome.out;
}

TEST(Command, HelpShowsExamples) {
  for (const char* line :
       {"SLUICE --help", "SLUICE verify --help", "SLUICE explain --help", "SLUICE launch --help",
        "SLUICE doctor --help", "SLUICE reproduce --help"}) {
    const Outcome outcome = shell(line);
    EXPECT_EQ(outcome.status, 0);
    EXPECT_NE(outcome.out.find("Example"), std::string::npos) << line;
  }
}

TEST(Command, DoctorListsItsFindings) {
  const Outcome outcome = shell("SLUICE doctor --json");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_TRUE(json.contains("version"));
  EXPECT_GE(json["findings"].size(), 5U);
  EXPECT_EQ(shell("SLUICE doctor").status, 0);
}

TEST(Command, SurvivesAClosedPipe) {
  const Outcome outcome =
      shell("SLUICE verify --ranks 1-8 --list | head -n 1; exit ${PIPESTATUS[0]}");
  EXPECT_TRUE(outcome.status == 0 || outcome.status == 3 || outcome.status == 128 + 13)
      << outcome.status;
}

}  // namespace
}  // namespace sluice::cli
