#include "bootstrap/launch/failure_report.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>

namespace sluice::bootstrap {
namespace {

TEST(FailureReport, ArrivesWithItsCulpritAndMessage) {
  FailureReports reports = FailureReports::make().value();
  const FailureReporter reporter = FailureReporter::to(reports.variable());
  reporter.send({.rank = 1, .culprit = 2, .message = "rank 2 is stopped"});
  reporter.send({.rank = 1, .culprit = 0, .message = "a later failure"});
  reporter.send({.rank = 0, .culprit = 2, .message = std::string(5000, 'x')});
  reports.read(3);
  ASSERT_NE(reports.of(1), nullptr);
  EXPECT_EQ(reports.of(1)->culprit, 2);
  EXPECT_EQ(reports.of(1)->message, "rank 2 is stopped") << "the first failure counts";
  ASSERT_NE(reports.of(0), nullptr);
  EXPECT_EQ(reports.of(0)->message.size(), 1007U);
  EXPECT_EQ(reports.of(2), nullptr);
}

TEST(FailureReport, OfARankThatDoesNotExistIsIgnored) {
  FailureReports reports = FailureReports::make().value();
  const FailureReporter reporter = FailureReporter::to(reports.variable());
  for (const auto& [rank, culprit] :
       {std::pair{3, 0}, {-1, 0}, {0, 3}, {0, -1}, {0, 2'000'000'000}})
    reporter.send({.rank = rank, .culprit = culprit, .message = "no"});
  reports.read(3);
  for (const Rank rank : {-1, 0, 1, 2, 3}) EXPECT_EQ(reports.of(rank), nullptr);
}

TEST(FailureReport, GarbageInThePipeIsIgnored) {
  FailureReports reports = FailureReports::make().value();
  const int pipe = std::stoi(reports.variable());
  const std::string garbage(3000, 'x');
  ASSERT_EQ(write(pipe, garbage.data(), garbage.size()), 3000);
  reports.read(3);
  for (const Rank rank : {0, 1, 2}) EXPECT_EQ(reports.of(rank), nullptr);
}

// A program between the launcher and the rank may close all descriptors and open others.
TEST(FailureReport, IsNotWrittenToAnotherFile) {
  FailureReports reports = FailureReports::make().value();
  const std::string& variable = reports.variable();
  const std::string path = testing::TempDir() + "report." + std::to_string(getpid());
  const int pipe = std::stoi(variable);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  ASSERT_EQ(dup2(file, pipe), pipe);
  FailureReporter::to(variable).send({.rank = 0, .culprit = 1, .message = "no"});
  EXPECT_EQ(lseek(file, 0, SEEK_END), 0);
  close(file);
  unlink(path.c_str());
  for (const char* wrong : {"", "x", "-1", "99999:1:2", "1", "1:2:3", "4294967296:1:2"})
    FailureReporter::to(wrong).send({.rank = 0, .culprit = 1, .message = "no"});
}

TEST(FailureReport, AFullPipeLosesReportsAndDoesNotBlock) {
  FailureReports reports = FailureReports::make().value();
  const FailureReporter reporter = FailureReporter::to(reports.variable());
  for (Rank rank = 0; rank < 1000; ++rank)
    reporter.send({.rank = rank, .culprit = 1, .message = "no"});
  reports.read(1000);
  EXPECT_NE(reports.of(0), nullptr);
  EXPECT_EQ(reports.of(999), nullptr);
}

}  // namespace
}  // namespace sluice::bootstrap
