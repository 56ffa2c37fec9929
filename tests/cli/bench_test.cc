// `sluice bench allreduce`: rows, checks, table and errors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

nlohmann::json rows_of(const std::string& arguments) {
  const Outcome outcome = shell("SLUICE bench allreduce --json " + arguments);
  EXPECT_EQ(outcome.status, 0) << arguments << "\n" << outcome.err;
  EXPECT_EQ(outcome.err, "") << arguments;
  return nlohmann::json::parse(outcome.out, nullptr, false);
}

TEST(Bench, ReportsEverySizeOfTheSweep) {
  const auto rows = rows_of("--ranks 3 --sizes 1K:4K --iterations 30");
  ASSERT_EQ(rows.size(), 3U) << rows;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto& row = rows[i];
    EXPECT_EQ(row["bytes"], 1024 << i);
    EXPECT_EQ(row["verified"], true);
    EXPECT_TRUE(row["algorithm"].is_string());
    EXPECT_GT(row["p50_us"], 0.0);
    EXPECT_GE(row["p99_us"], row["p50_us"]);
    const double rate_gbps = row["algbw_gbps"];
    EXPECT_NEAR(rate_gbps, (1024 << i) / (row["p50_us"].get<double>() * 1e3), 1e-6 * rate_gbps);
    EXPECT_NEAR(row["busbw_gbps"], rate_gbps * 4 / 3, 1e-6 * rate_gbps);
  }
}

TEST(Bench, ChecksEveryTypeAndOperation) {
  for (const char* type : {"f32", "f64", "f16", "bf16", "i32", "i64"}) {
    for (const char* op : {"sum", "mean", "min", "max"}) {
      const auto rows = rows_of(std::string{"--transport inproc --ranks 2 --sizes 8,4K --type "} +
                                type + " --op " + op + " --iterations 20");
      ASSERT_EQ(rows.size(), 2U) << type << " " << op;
      EXPECT_EQ(rows[0]["verified"], true) << type << " " << op;
      EXPECT_EQ(rows[1]["verified"], true) << type << " " << op;
    }
  }
}

TEST(Bench, RunsTheRequestedAlgorithm) {
  for (const char* transport : {"shm", "inproc"}) {
    const auto rows = rows_of(std::string{"--ranks 4 --algorithm ring --sizes 64K --foreign "} +
                              "--iterations 5 --wire bf16 --transport " + transport);
    ASSERT_EQ(rows.size(), 1U);
    EXPECT_EQ(rows[0]["algorithm"], "ring");
    EXPECT_EQ(rows[0]["verified"], true);
  }
}

TEST(Bench, RunsTheAlgorithmThatExplainPredicts) {
  // A private cache, so that no other test measures the machine in between.
  const std::string cache = testing::TempDir() + "explain-" + std::to_string(getpid());
  setenv("SLUICE_CACHE", cache.c_str(), 1);
  // A measurement on a disturbed machine is used but not saved, so try again.
  auto rows = rows_of("--ranks 2 --sizes 4:4M --iterations 5");
  constexpr int kMostAttempts = 50;
  for (int attempt = 1; attempt < kMostAttempts && !std::filesystem::exists(cache); ++attempt)
    rows = rows_of("--ranks 2 --sizes 4:4M --iterations 5");
  ASSERT_EQ(rows.size(), 21U);
  for (const auto& row : rows) {
    const Outcome outcome = shell(
        "SLUICE explain --json --ranks 2 --cluster this-machine --bytes " + row["bytes"].dump());
    ASSERT_EQ(outcome.status, 0) << outcome.err;
    EXPECT_EQ(nlohmann::json::parse(outcome.out)["chosen"], row["algorithm"]) << row["bytes"];
  }
  const Outcome overridden = shell(
      "SLUICE_ALGORITHM=torus@1M- SLUICE explain --ranks 2 --cluster this-machine --bytes 1M");
  EXPECT_NE(overridden.out.find("Chosen by SLUICE_ALGORITHM: torus"), std::string::npos)
      << overridden.out;
  std::filesystem::remove_all(cache);
}

TEST(Bench, PrintsATableWithARowPerSize) {
  const Outcome outcome = shell("SLUICE bench allreduce --ranks 2 --sizes 4,1K --iterations 10");
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("bus GB/s"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("1 KiB"), std::string::npos) << outcome.out;
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 4) << outcome.out;
}

TEST(Bench, RefusesBadInputWithOneSentence) {
  expect_refused("SLUICE bench allreduce --sizes lots", "\"lots\" is not a size");
  expect_refused("SLUICE bench allreduce --sizes 6",
                 "\"6\" is not a whole number of elements of 4 bytes");
  expect_refused("SLUICE bench allreduce --sizes 8K:4K", "ends before it begins");
  expect_refused("SLUICE bench allreduce --sizes 1T --ranks 4",
                 "ask for smaller sizes or fewer ranks");
  expect_refused("SLUICE bench allreduce --algorithm rign", "did you mean ring?");
  expect_refused("SLUICE bench allreduce --type f31", "there is no type \"f31\"");
  expect_refused("SLUICE bench allreduce --op avg", "there is no operation \"avg\"");
  expect_refused("SLUICE bench allreduce --transport carrier-pigeon", "choose from shm, inproc");
  expect_refused("SLUICE bench allreduce --ranks 1", "--ranks must be a whole number from 2");
  expect_refused("SLUICE bench allreduce --iterations 0",
                 "--iterations must be a whole number from 1");
  expect_refused("SLUICE bench ", "subcommand is required");
}

TEST(Bench, HelpShowsExamples) {
  const Outcome outcome = shell("SLUICE bench allreduce --help");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.out.find("Examples"), std::string::npos);
  EXPECT_EQ(outcome.out.find("as-rank"), std::string::npos) << "internal";
}

}  // namespace
}  // namespace sluice::cli
