#include "sluice/status.h"

#include <gtest/gtest.h>

namespace sluice::base {
namespace {

TEST(Result, HasAValueOrAStatus) {
  const Result<int> good = 7;
  EXPECT_TRUE(good.ok());
  EXPECT_EQ(good.value(), 7);
  EXPECT_TRUE(good.status().ok());

  const Result<int> bad = Status{Code::InvalidInput, "line 3: no"};
  EXPECT_FALSE(bad.ok());
  EXPECT_EQ(bad.status().message(), "line 3: no");
  try {
    (void)bad.value();
    FAIL() << "value() of a failed Result must throw";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::InvalidInput);
    EXPECT_STREQ(error.what(), "line 3: no");
  }
}

TEST(Result, CannotBeConstructedFromAnOkStatus) {
  EXPECT_THROW((void)Result<int>(Status{}), Error);
  EXPECT_THROW((void)Result<std::string>(Status(Code::Ok, "fine")), Error);
}

TEST(Code, HasANameForEveryValue) {
  EXPECT_STREQ(name(Code::Ok), "ok");
  EXPECT_STREQ(name(Code::InvalidArgument), "invalid argument");
  EXPECT_STREQ(name(Code::InvalidInput), "invalid input");
  EXPECT_STREQ(name(Code::NotProven), "not proven");
  EXPECT_STREQ(name(Code::NoMemory), "no memory");
  EXPECT_STREQ(name(Code::Mismatch), "mismatch");
  EXPECT_STREQ(name(Code::PeerLost), "peer lost");
  EXPECT_STREQ(name(Code::DeadlineExceeded), "deadline exceeded");
}

}  // namespace
}  // namespace sluice::base
