// A schedule written by hand, in every command that names an algorithm.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/format.h"
#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

const std::string kStar = "file:" SLUICE_SOURCE_DIR "/tests/schedule/files/star.txt";

TEST(ScheduleFile, IsProvenPricedDrawnAndSimulated) {
  const Outcome proof = shell("SLUICE verify --algorithm " + kStar + " --json");
  ASSERT_EQ(proof.status, 0) << proof.err;
  EXPECT_EQ(nlohmann::json::parse(proof.out)[0]["bytes_factor"], 3);

  const Outcome priced =
      shell("SLUICE explain --ranks 4 --bytes 1M --algorithm " + kStar + " --json");
  ASSERT_EQ(priced.status, 0) << priced.err;
  const auto json = nlohmann::json::parse(priced.out);
  EXPECT_EQ(json["chosen"], kStar);
  bool listed = false;
  for (const auto& candidate : json["candidates"]) {
    if (candidate["algorithm"] != kStar) continue;
    listed = true;
    EXPECT_EQ(candidate["steps"], 2);
    EXPECT_GT(candidate["predicted_us"], 0);
  }
  EXPECT_TRUE(listed);
  const Outcome table = shell("SLUICE explain --ranks 4 --bytes 1M --algorithm " + kStar);
  EXPECT_NE(table.out.find("Chosen by --algorithm: " + kStar), std::string::npos) << table.out;

  const Outcome text = shell("SLUICE explain --ranks 4 --bytes 1M --schedule --algorithm " + kStar +
                             " | SLUICE verify --file -");
  EXPECT_EQ(text.status, 0) << text.err;
  EXPECT_NE(text.out.find("proven      star all_reduce, 4 ranks"), std::string::npos) << text.out;

  const Outcome simulated = shell(
      "SLUICE simulate --cluster generic --ranks 4 --allreduce 1M --json --algorithm " + kStar);
  ASSERT_EQ(simulated.status, 0) << simulated.err;
  const auto row = nlohmann::json::parse(simulated.out)["rows"][0];
  EXPECT_EQ(row["algorithm"], kStar);
  EXPECT_GT(row["simulated_us"], 0);
}

TEST(ScheduleFile, RunsInLaunchedProcesses) {
  for (const char* const transport : {"shm", "tcp", "inproc"}) {
    const Outcome outcome = shell(
        "SLUICE bench allreduce --ranks 4 --sizes 4,1K,1M --iterations 5 --json --transport " +
        std::string{transport} + " --algorithm " + kStar);
    ASSERT_EQ(outcome.status, 0) << transport << "\n" << outcome.err;
    const auto rows = nlohmann::json::parse(outcome.out);
    ASSERT_EQ(rows.size(), 3U);
    for (const auto& row : rows) {
      EXPECT_EQ(row["algorithm"], kStar);
      EXPECT_TRUE(row["verified"]);
    }
  }
  const Outcome by_variable =
      shell("SLUICE_ALGORITHM=" + kStar +
            "@1K- SLUICE launch -n 4 -- SLUICE bench allreduce --sizes 512,4K --iterations 5 "
            "--op mean");
  EXPECT_EQ(by_variable.status, 0) << by_variable.err;
  EXPECT_NE(by_variable.out.find(kStar), std::string::npos) << by_variable.out;
}

TEST(ScheduleFile, ThatIsWrongIsRefusedInOneSentence) {
  const std::string all = "--ranks 4 --algorithm ";
  const std::string folder = testing::TempDir();
  const std::string broken = "file:" + folder + "broken_star.txt";
  shell("sed '/^rank 2 step 1/d' " + kStar.substr(5) + " > " + broken.substr(5));
  for (const std::string command :
       {"explain --bytes 1M ", "simulate --cluster generic --allreduce 1M ",
        "bench allreduce --sizes 4 "}) {
    const std::string line = "SLUICE " + command;
    expect_refused(base::format("{}{}{}", line, all, broken),
                   broken + " is not proven and will not run: rank 0, step 1");
    expect_refused(line + all + "file:/none", "/none cannot be read: No such file or directory");
    expect_refused(base::format("{}--ranks 3 --algorithm {}", line, kStar),
                   "is a schedule of 4 ranks, not 3");
  }
  EXPECT_EQ(shell("SLUICE verify --algorithm " + broken).status, 1);
  expect_refused("SLUICE explain --bytes 1M --collective broadcast " + all + kStar,
                 "does not support broadcast: it supports all_reduce");

  // Each rank names the file that one of them cannot read.
  const Outcome one =
      shell("SLUICE_ALGORITHM=file:star.txt SLUICE launch -n 3 -- bash -c 'mkdir -p " + folder +
            "r$SLUICE_RANK && cd " + folder +
            "r$SLUICE_RANK && rm -f star.txt; [ $SLUICE_RANK = 1 ] || "
            "SLUICE explain --ranks 3 --bytes 1M --algorithm ring --schedule > star.txt; "
            "SLUICE bench allreduce --sizes 4; sleep 2'");
  std::size_t named = 0;
  const std::string sentence = "rank 1: star.txt cannot be read: No such file";
  for (std::size_t at = 0; (at = one.err.find(sentence, at)) != std::string::npos; ++at) ++named;
  EXPECT_GE(named, 3U) << one.err;
}

}  // namespace
}  // namespace sluice::cli
