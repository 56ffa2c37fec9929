#include "recipe/learning_rate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sluice::recipe {
namespace {

TEST(LearningRateSchedule, IsConstantByDefault) {
  for (const double position : {0, 1, 1000})
    EXPECT_EQ(learning_rate_at({.base = 0.3}, position), 0.3);
}

TEST(LearningRateSchedule, WarmsUpLinearly) {
  const LearningRateSchedule schedule{.base = 8, .warm_up = {.length = 4, .from = 0.25}};
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 0), 2);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1), 3.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 3), 6.5);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 4), 8);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 400), 8);
}

TEST(LearningRateSchedule, DropsAtItsSteps) {
  const LearningRateSchedule schedule{
      .base = 2,
      .warm_up = {.length = 10},
      .decay = SteppedLearningRate{{{30, 0.1}, {60, 0.01}, {80, 0.5}}}};
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 5), 1);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 29), 2);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 30), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 59), 0.2);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 60), 0.02);
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1000), 1);
}

// Fujitsu's MLPerf run: rate 13, warm-up 540 steps, power 2.2 over 780 steps, end 0.0325.
TEST(LearningRateSchedule, FollowsThePolynomialOfAPublishedRun) {
  const LearningRateSchedule schedule{
      .base = 13,
      .warm_up = {.length = 540},
      .decay = PolynomialLearningRate{.length = 780, .power = 2.2, .end = 0.0025}};
  for (int step = 0; step < 1350; ++step) {
    const double s = step;
    const double p = std::min(s - 540, 780.0) / 780;
    const double expected =
        step < 540 ? 13 * s / 540 : 13 * ((1 - 0.0025) * std::pow(1 - p, 2.2) + 0.0025);
    ASSERT_NEAR(learning_rate_at(schedule, s), expected, 1e-12) << step;
  }
  EXPECT_DOUBLE_EQ(learning_rate_at(schedule, 1349), 0.0325);
}

}  // namespace
}  // namespace sluice::recipe
