#include "transport/spin_rule.h"

#include <gtest/gtest.h>

namespace sluice::transport {
namespace {

using namespace std::chrono_literals;

// How long a rank looks now before it sleeps, to a microsecond.
std::chrono::microseconds patience(const SpinRule& rule) {
  std::chrono::microseconds idle{0};
  while (rule.looks_again(idle)) ++idle;
  return idle;
}

void repeat(int times, const auto& act) {
  for (int i = 0; i < times; ++i) act();
}

TEST(SpinRule, LooksForItsLongestTimeAtFirst) {
  EXPECT_EQ(patience(SpinRule{}), SpinRule::kLongest);
}

TEST(SpinRule, ShortWaitsKeepItLooking) {
  SpinRule rule;
  repeat(1000, [&] { rule.waited(150us); });
  EXPECT_EQ(patience(rule), SpinRule::kLongest);
}

TEST(SpinRule, AFewLongWaitsMakeItSleepAtOnce) {
  SpinRule rule;
  rule.waited(2ms);
  EXPECT_LT(patience(rule), SpinRule::kLongest);
  EXPECT_GT(patience(rule), 0us) << "one long wait may be an accident";
  repeat(6, [&] { rule.waited(2ms); });
  EXPECT_EQ(patience(rule), 0us);
  EXPECT_FALSE(rule.looks_again(0ns));
}

TEST(SpinRule, ShortSleepsBringItBack) {
  SpinRule rule;
  repeat(20, [&] { rule.waited(1s); });
  ASSERT_EQ(patience(rule), 0us);
  rule.waited(30us);
  EXPECT_GT(patience(rule), 0us);
  repeat(10, [&] { rule.waited(30us); });
  EXPECT_EQ(patience(rule), SpinRule::kLongest);
}

// Of waits that are all too long, it spends a vanishing part looking.
TEST(SpinRule, LongWaitsCostLittle) {
  SpinRule rule;
  std::chrono::microseconds looked{0};
  constexpr int kWaits = 1000;
  repeat(kWaits, [&] {
    looked += patience(rule);
    rule.waited(1ms);
  });
  EXPECT_LT(looked, kWaits * 1ms / 1000);
}

TEST(SpinRule, ALostCoreMakesItSleepForAWhile) {
  SpinRule rule;
  rule.lost_core();
  EXPECT_EQ(patience(rule), 0us);
  int waits = 0;
  while (patience(rule) == 0us && waits < 100) {
    rule.waited(50us);
    ++waits;
  }
  EXPECT_GT(waits, 2);
  EXPECT_LT(waits, 20) << "it tries again";
}

// Beside a thread that computes, every look loses the core, and sleeps are short.
TEST(SpinRule, ACoreThatIsLostAgainAndAgainIsLostRarely) {
  SpinRule rule;
  int lost = 0;
  constexpr int kWaits = 100'000;
  repeat(kWaits, [&] {
    if (rule.looks_again(0ns)) {
      rule.lost_core();
      ++lost;
    }
    rule.waited(50us);
  });
  EXPECT_LT(lost, kWaits / 500);
  EXPECT_GT(lost, 10) << "it still tries now and then";

  // The core is free again.
  repeat(SpinRule::kMostPauses + 10, [&] { rule.waited(50us); });
  EXPECT_EQ(patience(rule), SpinRule::kLongest);
}

}  // namespace
}  // namespace sluice::transport
