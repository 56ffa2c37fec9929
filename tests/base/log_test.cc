#include "base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace sluice::base {
namespace {

using Messages = std::vector<std::pair<LogLevel, std::string>>;

class Log : public testing::Test {
 protected:
  ~Log() override { set_log(nullptr); }
  LogSink keep() {
    return
        [this](LogLevel level, const std::string& message) { heard_.emplace_back(level, message); };
  }
  Messages heard_;
};

TEST_F(Log, WarningsGoToStandardErrorByDefault) {
  set_log(nullptr);
  testing::internal::CaptureStderr();
  log_info("eth0 it is");
  log_warning("a rank is slow");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "sluice: warning: a rank is slow\n");
}

TEST_F(Log, InfoIsALevelThatOneAsksFor) {
  set_log(nullptr);
  set_log_level(LogLevel::Info);
  testing::internal::CaptureStderr();
  log_info("eth0 it is");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "sluice: eth0 it is\n");
}

TEST_F(Log, ASinkHearsItsThresholdAndAbove) {
  testing::internal::CaptureStderr();
  set_log(keep());
  log_info("one");
  log_warning("two");
  set_log(keep(), LogLevel::Warning);
  log_info("three");
  log_warning("four");
  set_log(keep(), LogLevel::Off);
  log_warning("five");
  EXPECT_EQ(
      heard_,
      (Messages{{LogLevel::Info, "one"}, {LogLevel::Warning, "two"}, {LogLevel::Warning, "four"}}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Log, TheProgramDecidesBeforeTheEnvironment) {
  set_log(keep(), LogLevel::Warning);
  EXPECT_TRUE(set_log_level_from("stderr"));
  log_info("one");
  EXPECT_TRUE(heard_.empty());
}

TEST_F(Log, OnlyKnownLevelsAreTaken) {
  for (const char* name : {"info", "stderr", "warning", "off"})
    EXPECT_TRUE(set_log_level_from(name));
  for (const char* name : {"", "INFO", "loud"}) EXPECT_FALSE(set_log_level_from(name)) << name;
}

}  // namespace
}  // namespace sluice::base
