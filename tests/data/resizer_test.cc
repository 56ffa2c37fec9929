#include "data/image/resizer.h"

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
    // Sides are whole pixels, so they deviate by up to 1 in 100.
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

TEST(RandomCrop, OfAStripIsTheMiddle) {
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

TEST(LargestDivisor, LeavesEnoughPixels) {
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

Image noise(int channels, int height, int width) {
  Image pixels;
  pixels.resize(Storage::Interleaved, channels, height, width);
  base::Random random{static_cast<std::uint64_t>(height * 1000 + width)};
  for (std::uint8_t& value : pixels.pixels) value = static_cast<std::uint8_t>(random.below(256));
  return pixels;
}

// The definition, pixel by pixel: a triangle over the crop that is two output pixels or two input
// pixels wide, whichever is more.
double expected(const Image& pixels, const Crop& crop, TargetSize size, int channel, int y, int x) {
  const auto weight = [](double begin, double length, int outputs, int out, int in, int inputs) {
    if (in < std::max(0.0, std::floor(begin)) ||
        in >= std::min<double>(inputs, std::ceil(begin + length))) {
      return 0.0;
    }
    const double scale = length / outputs;
    const double away = std::abs(in + 0.5 - (begin + (out + 0.5) * scale));
    return std::max(0.0, 1 - away / std::max(1.0, scale));
  };
  double sum = 0;
  double total = 0;
  for (int row = 0; row < pixels.height; ++row) {
    const double down = weight(crop.top, crop.height, size.height, y, row, pixels.height);
    if (down == 0) continue;
    for (int column = 0; column < pixels.width; ++column) {
      const double across = weight(crop.left, crop.width, size.width, x, column, pixels.width);
      const auto at = (static_cast<std::size_t>(row) * static_cast<std::size_t>(pixels.width) +
                       static_cast<std::size_t>(column)) *
                          static_cast<std::size_t>(pixels.channels) +
                      static_cast<std::size_t>(channel);
      sum += down * across * pixels.pixels[at];
      total += down * across;
    }
  }
  return sum / total;
}

TEST(Resizer, MatchesItsDefinition) {
  struct Case {
    int channels, height, width;
    Crop crop;
    TargetSize size;
  };
  for (const Case& one :
       {Case{3, 37, 50, {3, 5, 30, 40}, {12, 12}},
        Case{3, 20, 20, {2.25, 1.5, 14.5, 17.25}, {16, 9}}, Case{3, 8, 9, {0, 0, 8, 9}, {21, 20}},
        Case{1, 28, 28, {0, 0, 28, 28}, {10, 40}}, Case{3, 500, 40, {0, 0, 500, 40}, {3, 3}},
        Case{3, 1, 1, {0, 0, 1, 1}, {4, 4}}, Case{3, 64, 64, {63, 63, 1, 1}, {2, 2}}}) {
    const Image pixels = noise(one.channels, one.height, one.width);
    const auto channels = static_cast<std::size_t>(one.channels);
    const Normalization normalization{std::vector<double>(channels, 100),
                                      std::vector<double>(channels, 50)};
    const auto plane =
        static_cast<std::size_t>(one.size.height) * static_cast<std::size_t>(one.size.width);
    for (const bool flipped : {false, true}) {
      std::vector<float> out(channels * plane);
      Resizer{}.resize(pixels.view(), one.crop, one.size, flipped, normalization, out.data());
      std::size_t next = 0;
      for (int channel = 0; channel < one.channels; ++channel) {
        for (int y = 0; y < one.size.height; ++y) {
          for (int x = 0; x < one.size.width; ++x) {
            const int from = flipped ? one.size.width - 1 - x : x;
            const double value = expected(pixels, one.crop, one.size, channel, y, from);
            // Sums have at most some hundred terms, each rounded to 24 bits.
            ASSERT_NEAR(out[next++], (value - 100) / 50, 1e-4)
                << one.height << "x" << one.width << " at " << channel << " " << y << " " << x;
          }
        }
      }
    }
  }
}

TEST(Resizer, DoesNotChangeAnImageOfTheRightSize) {
  const Image pixels = noise(3, 16, 24);
  Image out;
  Resizer{}.resize(pixels.view(), {16, 24}, out);
  EXPECT_EQ(out.pixels, pixels.pixels);
}

TEST(Resizer, RoundsPixels) {
  Image pixels;
  pixels.resize(Storage::Interleaved, 1, 1, 2);
  pixels.pixels = {10, 13};
  Image out;
  Resizer{}.resize(pixels.view(), {1, 1}, out);
  EXPECT_EQ(out.pixels, std::vector<std::uint8_t>{12});
}

}  // namespace
}  // namespace sluice::data
