#include "data/loader/batcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "data/formats/memory_dataset.h"
#include "data/image/augment.h"

namespace sluice::data {
namespace {

// A value that no other (sample, channel, row, column) here has nearby.
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

MemoryDataset some_images(int count) {
  MemoryDataset images{10};
  for (int i = 0; i < count; ++i) EXPECT_TRUE(images.add(image_of(i), i % 10).ok());
  return images;
}

const Normalization kPlain{.mean = {0, 0, 0}, .deviation = {1, 1, 1}};
const Normalization kSome{.mean = {100, 110, 120}, .deviation = {50, 60, 70}};

TEST(Render, MovesMirrorsAndNormalises) {
  const Image image = image_of(2);
  std::vector<float> out(image.size());
  for (const View& view : {View{0, 0, false}, View{8, 3, false}, View{4, 4, true}, View{1, 8, true},
                           View{7, 0, true}}) {
    render(planes_of(image), kSome, 4, view, out.data());
    std::size_t next = 0;
    for (int channel = 0; channel < 3; ++channel) {
      for (int y = 0; y < 6; ++y) {
        for (int column = 0; column < 5; ++column) {
          const int x = view.flipped ? 4 - column : column;
          const int from_y = y + view.top - 4;
          const int from_x = x + view.left - 4;
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

TEST(Render, WithoutAugmentationIsTheImage) {
  const Image image = image_of(1);
  std::vector<float> out(image.size());
  render(planes_of(image), kPlain, 0, {}, out.data());
  for (std::size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], image.pixels[i]);
}

TEST(RandomView, IsAFunctionOfSeedEpochAndSample) {
  const auto views = [](std::uint64_t seed, std::uint64_t epoch) {
    std::vector<int> all;
    for (std::uint64_t sample = 0; sample < 200; ++sample) {
      const View view = random_view({}, seed, epoch, sample);
      all.push_back((view.top * 9 + view.left) * 2 + (view.flipped ? 1 : 0));
    }
    return all;
  };
  EXPECT_EQ(views(1, 2), views(1, 2));
  EXPECT_NE(views(1, 2), views(1, 3));
  EXPECT_NE(views(1, 2), views(2, 2));
}

TEST(RandomView, ReachesEveryPlaceAndBothSides) {
  std::set<std::vector<int>> seen;
  for (std::uint64_t sample = 0; sample < 5000; ++sample) {
    const View view = random_view({.padding = 2}, 0, 0, sample);
    EXPECT_GE(std::min(view.top, view.left), 0);
    EXPECT_LE(std::max(view.top, view.left), 4);
    seen.insert({view.top, view.left, view.flipped ? 1 : 0});
  }
  EXPECT_EQ(seen.size(), 50U);
  for (std::uint64_t sample = 0; sample < 50; ++sample) {
    EXPECT_FALSE(random_view({.flip = false}, 0, 0, sample).flipped);
  }
}

TEST(MemoryDataset, KnowsTheMeanAndDeviationOfItsPixels) {
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

TEST(Batcher, FillsABatchInTheOrderAsked) {
  const MemoryDataset images = some_images(12);
  Batcher batcher{images, {.normalization = kPlain}};
  Batch batch;
  const std::vector<std::size_t> samples{7, 0, 11};
  ASSERT_TRUE(batcher.fill(0, samples, batch).ok());
  EXPECT_EQ(batch.count, 3U);
  EXPECT_EQ(batch.labels, (std::vector<std::int64_t>{7, 0, 1}));
  for (std::size_t i = 0; i < 3; ++i) {
    const Image image = image_of(static_cast<int>(samples[i]));
    for (std::size_t j = 0; j < image.size(); ++j) {
      ASSERT_EQ(batch.images[i * image.size() + j], image.pixels[j]);
    }
  }
}

TEST(Batcher, SeesASampleTheSameWayInWhicheverBatchItComes) {
  const MemoryDataset images = some_images(12);
  const BatcherOptions options{.normalization = kSome, .augmentation = Augmentation{}, .seed = 4};
  Batcher one{images, options};
  Batcher other{images, options};
  Batch batch;
  Batch alone;
  ASSERT_TRUE(one.fill(3, std::vector<std::size_t>{1, 5, 9}, batch).ok());
  ASSERT_TRUE(other.fill(3, std::vector<std::size_t>{5}, alone).ok());
  const std::size_t size = image_of(0).size();
  for (std::size_t j = 0; j < size; ++j) EXPECT_EQ(batch.images[size + j], alone.images[j]);
}

// Sample 2 cannot be decoded.
class OneBroken final : public Dataset {
 public:
  std::size_t size() const override { return 4; }
  int classes() const override { return 4; }
  int label(std::size_t sample) const override { return static_cast<int>(sample); }
  Status decode(std::size_t sample, Image& image) const override {
    if (sample == 2) return {Code::InvalidInput, "two.jpg is broken"};
    image = image_of(static_cast<int>(sample));
    return {};
  }
};

TEST(Batcher, LeavesBrokenImagesOutAndNamesEachOnce) {
  const OneBroken images;
  Batcher batcher{images, {.normalization = kPlain}};
  Batch batch;
  for (int epoch = 0; epoch < 2; ++epoch) {
    ASSERT_TRUE(batcher.fill(0, std::vector<std::size_t>{1, 2, 3}, batch).ok());
    EXPECT_EQ(batch.count, 2U);
    EXPECT_EQ(batch.labels[1], 3);
    const std::size_t size = image_of(0).size();
    EXPECT_EQ(batch.images[size], image_of(3).pixels[0]);
  }
  EXPECT_EQ(batcher.skipped(), std::vector<std::string>{"two.jpg is broken"});
  EXPECT_EQ(batcher.fill(0, std::vector<std::size_t>{2}, batch).message(),
            "none of a batch's 1 images can be used: two.jpg is broken");
}

}  // namespace
}  // namespace sluice::data
