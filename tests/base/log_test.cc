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
  LogSink sink() {
    return [this](LogLevel level, const std::string& message) {
      messages_.emplace_back(level, message);
    };
  }
  Messages messages_;
};

TEST_F(Log, SendsWarningsToStandardErrorByDefault) {
  set_log(nullptr);
  testing::internal::CaptureStderr();
  log_info("using eth0");
  log_warning("a rank is slow");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "sluice: warning: a rank is slow\n");
}

TEST_F(Log, ShowsInfoMessagesOnRequest) {
  set_log(nullptr);
  set_log_level(LogLevel::Info);
  testing::internal::CaptureStderr();
  log_info("using eth0");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "sluice: using eth0\n");
}

TEST_F(Log, SendsMessagesOfTheThresholdAndAboveToTheSink) {
  testing::internal::CaptureStderr();
  set_log(sink());
  log_info("one");
  log_warning("two");
  set_log(sink(), LogLevel::Warning);
  log_info("three");
  log_warning("four");
  set_log(sink(), LogLevel::Off);
  log_warning("five");
  EXPECT_EQ(
      messages_,
      (Messages{{LogLevel::Info, "one"}, {LogLevel::Warning, "two"}, {LogLevel::Warning, "four"}}));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST_F(Log, PrefersTheProgramToTheEnvironment) {
  set_log(sink(), LogLevel::Warning);
  EXPECT_TRUE(set_log_level_from("stderr"));
  log_info("one");
  EXPECT_TRUE(messages_.empty());
}

TEST_F(Log, AcceptsOnlyKnownLevels) {
  for (const char* name : {"info", "stderr", "warning", "off"})
    EXPECT_TRUE(set_log_level_from(name));
  for (const char* name : {"", "INFO", "loud"}) EXPECT_FALSE(set_log_level_from(name)) << name;
}

}  // namespace
}  // namespace sluice::base
