#include "gradient/wire/scales.h"

#include <gtest/gtest.h>

#include <cmath>

namespace sluice::gradient {
namespace {

TEST(WireScale, BringsTheLargestSumBetweenTwoToTheElevenAndTwelve) {
  for (const float carried : {1.0F, 0.25F, 1024.0F}) {
    for (const float largest : {1e-7F, 0.3F, 1.0F, 2047.0F, 2048.0F, 4095.0F, 4096.0F, 65504.0F}) {
      WireScale scale;
      scale.update(carried, largest);
      const float next = largest / carried * scale.value();
      EXPECT_GE(next, 2048) << largest;
      EXPECT_LT(next, 4096) << largest;
      EXPECT_EQ(std::exp2(std::ilogb(scale.value())), scale.value()) << "a power of two";
    }
  }
}

TEST(WireScale, StaysWhereItIsForAZeroGradient) {
  WireScale scale;
  scale.update(1, 5);
  const float before = scale.value();
  scale.update(before, 0);
  EXPECT_EQ(scale.value(), before);
}

TEST(WireScale, IsLoweredOnlyForAStepThatCarriedIt) {
  WireScale scale;
  scale.lower(1);
  EXPECT_EQ(scale.value(), 0.5F);
  scale.lower(1);
  EXPECT_EQ(scale.value(), 0.5F);
  scale.lower(0.5F);
  EXPECT_EQ(scale.value(), 0.25F);
}

TEST(WireScale, StaysFiniteAndNormal) {
  WireScale scale;
  for (int k = 0; k < 1000; ++k) scale.lower(scale.value());
  EXPECT_TRUE(std::isnormal(scale.value()));
  for (int k = 0; k < 100; ++k) scale.update(scale.value(), 0x1p-24F);
  EXPECT_TRUE(std::isnormal(scale.value()));
  EXPECT_TRUE(std::isnormal(1 / (scale.value() * 1e5F)));
}

TEST(LossScale, IsOneUnlessEnabled) {
  LossScale scale{{}};
  EXPECT_EQ(scale.value(), 1);
  scale.update(1, true);
  EXPECT_EQ(scale.value(), 1);
}

TEST(LossScale, LearnsOnlyFromStepsThatCarriedIt) {
  LossScale scale{{.enabled = true, .initial = 64, .growth_steps = 2}};
  scale.update(64, true);
  EXPECT_EQ(scale.value(), 32);
  scale.update(64, true);  // was on its way when the scale was lowered
  EXPECT_EQ(scale.value(), 32);
  scale.update(64, false);
  scale.update(32, false);
  EXPECT_EQ(scale.value(), 32);
  EXPECT_EQ(scale.clean_steps(), 1);
  scale.update(32, false);
  EXPECT_EQ(scale.value(), 64);
  EXPECT_EQ(scale.clean_steps(), 0);
}

}  // namespace
}  // namespace sluice::gradient
