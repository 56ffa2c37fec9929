#include "data/image/viewer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace sluice::data {
namespace {

// A value that differs from those of nearby samples, channels, rows and columns.
std::uint8_t pixel(int sample, int channel, int y, int x) {
  return static_cast<std::uint8_t>(sample * 71 + channel * 53 + y * 17 + x * 3);
}

Image image_of(int sample, int height = 6, int width = 5) {
  Image image{.channels = 3, .height = height, .width = width};
  for (int channel = 0; channel < 3; ++channel) {
    for (int y = 0; y < height; ++y) {
      for (int x = 0; x < width; ++x) image.pixels.push_back(pixel(sample, channel, y, x));
    }
  }
  return image;
}

const Normalization kPlain{.mean = {0, 0, 0}, .deviation = {1, 1, 1}};
const Normalization kSome{.mean = {100, 110, 120}, .deviation = {50, 60, 70}};

TEST(Render, ShiftsMirrorsAndNormalises) {
  const Image image = image_of(2);
  std::vector<float> out(image.size());
  for (const Shift& shift : {Shift{-4, -4, false}, Shift{4, -1, false}, Shift{0, 0, true},
                             Shift{-3, 4, true}, Shift{3, -4, true}}) {
    render(image.view(), kSome, shift, out.data());
    std::size_t next = 0;
    for (int channel = 0; channel < 3; ++channel) {
      for (int y = 0; y < 6; ++y) {
        for (int column = 0; column < 5; ++column) {
          const int x = shift.flipped ? 4 - column : column;
          const int from_y = y + shift.down;
          const int from_x = x + shift.right;
          const auto c = static_cast<std::size_t>(channel);
          const bool inside = from_y >= 0 && from_y < 6 && from_x >= 0 && from_x < 5;
          const double expected =
              inside ? (pixel(2, channel, from_y, from_x) - kSome.mean[c]) / kSome.deviation[c] : 0;
          ASSERT_NEAR(out[next++], expected, 1e-6);
        }
      }
    }
  }
}

TEST(Render, WithoutAShiftIsTheImage) {
  const Image image = image_of(1);
  std::vector<float> out(image.size());
  render(image.view(), kPlain, {}, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], image.pixels[i]);
}

TEST(RandomShift, IsAFunctionOfSeedEpochAndSample) {
  const auto shifts = [](std::uint64_t seed, std::uint64_t epoch) {
    std::vector<int> all;
    for (std::size_t sample = 0; sample < 200; ++sample) {
      const Shift shift = random_shift(4, true, seed, {epoch, sample});
      all.push_back((shift.down * 9 + shift.right) * 2 + (shift.flipped ? 1 : 0));
    }
    return all;
  };
  EXPECT_EQ(shifts(1, 2), shifts(1, 2));
  EXPECT_NE(shifts(1, 2), shifts(1, 3));
  EXPECT_NE(shifts(1, 2), shifts(2, 2));
}

TEST(RandomShift, ReachesEveryOffsetWithAndWithoutAMirror) {
  std::set<std::vector<int>> seen;
  for (std::size_t sample = 0; sample < 5000; ++sample) {
    const Shift shift = random_shift(2, true, 0, {0, sample});
    EXPECT_GE(std::min(shift.down, shift.right), -2);
    EXPECT_LE(std::max(shift.down, shift.right), 2);
    seen.insert({shift.down, shift.right, shift.flipped ? 1 : 0});
  }
  EXPECT_EQ(seen.size(), 50U);
  for (std::size_t sample = 0; sample < 50; ++sample) {
    EXPECT_FALSE(random_shift(4, false, 0, {0, sample}).flipped);
  }
}

TEST(MemoryDataset, ComputesMeanAndDeviationOfItsPixels) {
  MemoryDataset images{2};
  ASSERT_TRUE(images.add({1, 1, 2, {0, 10}}, 0).ok());
  ASSERT_TRUE(images.add({1, 1, 2, {20, 30}}, 1).ok());
  const Normalization statistics = images.statistics();
  EXPECT_DOUBLE_EQ(statistics.mean.at(0), 15);
  EXPECT_DOUBLE_EQ(statistics.deviation.at(0), std::sqrt(125));
  EXPECT_EQ(images.add({1, 2, 1, {1, 2}}, 0).message(),
            "is 1x2 where others are 2x1: bring all images to one size");
  EXPECT_EQ(images.size(), 2U);
}

// A grey image in memory, for a network that takes larger images.
TEST(Viewer, ResizesImages) {
  const std::vector<std::uint8_t> pixels(28 * 28, 200);
  const ImageView stored{Storage::Planes, 1, 28, 28, pixels};
  std::vector<float> out(64 * 64);
  for (const ViewKind kind :
       {ViewKind::Whole, ViewKind::Shifted, ViewKind::CentreCrop, ViewKind::ResizedCrop}) {
    Viewer viewer{{.kind = kind, .padding = 4}, {.mean = {100}, .deviation = {50}}, 64, 3};
    ASSERT_TRUE(viewer.view(stored, {1, 2}, out.data()).ok());
    EXPECT_NEAR(out[32 * 64 + 32], 2, 1e-5);
  }
  Viewer coloured{{}, {.mean = {0, 0, 0}, .deviation = {1, 1, 1}}, 28, 3};
  EXPECT_EQ(coloured.view(stored, {}, out.data()).message(), "has 1 channels where 3 are expected");
}

}  // namespace
}  // namespace sluice::data
