#include "data/image/crop.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace sluice::data {
namespace {

TEST(RandomCrop, LiesInTheImageAndInItsRanges) {
  base::Random random{5};
  double least = 1;
  double most = 0;
  double mean_top = 0;
  constexpr int kDraws = 4000;
  for (int i = 0; i < kDraws; ++i) {
    const Crop crop = random_crop({}, 375, 500, random);
    ASSERT_GE(crop.top, 0);
    ASSERT_GE(crop.left, 0);
    ASSERT_LE(crop.top + crop.height, 375);
    ASSERT_LE(crop.left + crop.width, 500);
    const double area = crop.height * crop.width / (375.0 * 500);
    // Sides are whole pixels: at least 1 in 100 of them here.
    ASSERT_GE(area, 0.08 * 0.97);
    ASSERT_GE(crop.width / crop.height, 0.75 * 0.98);
    ASSERT_LE(crop.width / crop.height, 4.0 / 3 * 1.02);
    least = std::min(least, area);
    most = std::max(most, area);
    mean_top += (crop.top + crop.height / 2) / kDraws;
  }
  EXPECT_LT(least, 0.1);
  EXPECT_GT(most, 0.9);
  EXPECT_NEAR(mean_top, 375 / 2.0, 5);
}

TEST(RandomCrop, OfAStripIsItsMiddle) {
  base::Random random{5};
  const Crop crop = random_crop({.least_area = 0.5}, 10, 1000, random);
  EXPECT_EQ(crop.top, 0);
  EXPECT_EQ(crop.height, 10);
  EXPECT_EQ(crop.width, 13);
  EXPECT_NEAR(crop.left, 493.5, 0.51);
  const Crop dot = random_crop({}, 1, 1, random);
  EXPECT_EQ(dot.height, 1);
  EXPECT_EQ(dot.width, 1);
}

TEST(CentreCrop, IsTheMiddleSquare) {
  const Crop crop = centre_crop(0.875, 256, 320);
  EXPECT_DOUBLE_EQ(crop.height, 224);
  EXPECT_DOUBLE_EQ(crop.width, 224);
  EXPECT_DOUBLE_EQ(crop.top, 16);
  EXPECT_DOUBLE_EQ(crop.left, 48);
}

TEST(LargestDivisor, LeavesAsManyPixelsAsAreNeeded) {
  const auto of = [](double height, double width) {
    return largest_divisor({0, 0, height, width}, 224);
  };
  EXPECT_EQ(of(100, 100), 1);
  EXPECT_EQ(of(447, 5000), 1);
  EXPECT_EQ(of(448, 448), 2);
  EXPECT_EQ(of(895, 1000), 2);
  EXPECT_EQ(of(896, 1000), 4);
  EXPECT_EQ(of(1792, 1792), 8);
  EXPECT_EQ(of(1e5, 1e5), 8);
}

}  // namespace
}  // namespace sluice::data
