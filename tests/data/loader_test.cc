#include "data/loader/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/random.h"
#include "data/dataset.h"

namespace sluice::data {
namespace {

constexpr int kSide = 8;
const Normalization kSome{.mean = {100, 110, 120}, .deviation = {50, 60, 70}};

MemoryDataset some_images(std::size_t count) {
  MemoryDataset images{10};
  base::Random random{9};
  for (std::size_t i = 0; i < count; ++i) {
    Image image{.channels = 3, .height = kSide, .width = kSide};
    for (std::size_t j = 0; j < image.size(); ++j) {
      image.pixels.push_back(static_cast<std::uint8_t>(random.below(256)));
    }
    EXPECT_TRUE(images.add(image, static_cast<int>(i % 10)).ok());
  }
  return images;
}

LoaderOptions options(int threads, ViewKind kind) {
  return {.threads = threads,
          .ahead = 3,
          .view = {.kind = kind, .padding = 2},
          .normalization = kSome,
          .seed = 4,
          .image = kSide};
}

// The samples of batch b in order, one epoch after the other.
auto in_turn(std::size_t samples, std::size_t size) {
  return [=, held = std::vector<SampleRef>{}](std::int64_t batch) mutable {
    held.clear();
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t position = static_cast<std::size_t>(batch) * size + i;
      held.push_back({position / samples, position % samples});
    }
    return std::span<const SampleRef>{held};
  };
}

struct Taken {
  std::vector<std::size_t> counts;
  std::vector<float> images;
  std::vector<std::int64_t> labels;
};

Taken take_all(Loader& loader) {
  Taken taken;
  while (const Batch* const batch = loader.next().value()) {
    taken.counts.push_back(batch->count);
    const auto values = static_cast<std::ptrdiff_t>(batch->count * batch->image_size());
    taken.images.insert(taken.images.end(), batch->images.begin(), batch->images.begin() + values);
    taken.labels.insert(taken.labels.end(), batch->labels.begin(),
                        batch->labels.begin() + static_cast<std::ptrdiff_t>(batch->count));
  }
  return taken;
}

TEST(Loader, GivesTheSameBitsForAnyNumberOfThreads) {
  const MemoryDataset images = some_images(53);
  for (const ViewKind kind :
       {ViewKind::Whole, ViewKind::Shifted, ViewKind::ResizedCrop, ViewKind::CentreCrop}) {
    Loader one{images, options(0, kind), in_turn(53, 11), 0, 20};
    const Taken expected = take_all(one);
    EXPECT_EQ(expected.counts, std::vector<std::size_t>(20, 11));
    for (std::size_t i = 0; i < expected.labels.size(); ++i) {
      ASSERT_EQ(expected.labels[i], static_cast<std::int64_t>(i % 53 % 10));
    }
    for (const int threads : {1, 2, 7}) {
      Loader many{images, options(threads, kind), in_turn(53, 11), 0, 20};
      const Taken taken = take_all(many);
      EXPECT_EQ(taken.images, expected.images);
      EXPECT_EQ(taken.labels, expected.labels);
    }
  }
}

// A resumed training starts in the middle.
TEST(Loader, ABatchDoesNotDependOnEarlierBatches) {
  const MemoryDataset images = some_images(53);
  Loader all{images, options(2, ViewKind::Shifted), in_turn(53, 5), 0, 30};
  Loader rest{images, options(2, ViewKind::Shifted), in_turn(53, 5), 17, 30};
  const Taken expected = take_all(all);
  const Taken taken = take_all(rest);
  EXPECT_TRUE(std::equal(taken.images.rbegin(), taken.images.rend(), expected.images.rbegin()));
  EXPECT_EQ(taken.counts.size(), 13U);
}

TEST(Loader, WithoutAugmentationGivesTheNormalisedImage) {
  const MemoryDataset images = some_images(3);
  Loader loader{images, options(1, ViewKind::Whole), in_turn(3, 3), 0, 1};
  const Batch& batch = *loader.next().value();
  const std::size_t plane = std::size_t{kSide} * kSide;
  for (std::size_t i = 0; i < 3 * 3 * plane; ++i) {
    const std::size_t channel = i / plane % 3;
    ASSERT_NEAR(batch.images[i],
                (images.pixels()[i] - kSome.mean[channel]) / kSome.deviation[channel], 1e-6);
  }
  EXPECT_EQ(loader.next().value(), nullptr);
  EXPECT_EQ(loader.next().value(), nullptr);
}

// Reads slowly, counts the samples it has read, and fails at some of them.
class Watched final : public Dataset {
 public:
  explicit Watched(std::size_t count) : images_{some_images(count)} {}

  std::size_t size() const override { return images_.size(); }
  int classes() const override { return 10; }
  int label(std::size_t sample) const override { return images_.label(sample); }
  Status decode(std::size_t sample, Image& image) const override {
    ++reads;
    if (throws) throw std::runtime_error{"no more"};
    if (sample % 10 == broken) return {Code::InvalidInput, name(sample) + " is broken"};
    return images_.decode(sample, image);
  }

  mutable std::atomic<int> reads = 0;
  std::size_t broken = 10;
  bool throws = false;

 private:
  MemoryDataset images_;
};

TEST(Loader, LoadsNoFurtherAheadThanItsLimit) {
  const Watched images{40};
  Loader loader{images, options(2, ViewKind::Whole), in_turn(40, 5), 0, 100};
  (void)loader.next().value();
  // 3 batches of 5 beyond the one in use, and never more.
  for (int i = 0; i < 1000 && images.reads < 20; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  EXPECT_EQ(images.reads, 20);
  (void)loader.next().value();
  for (int i = 0; i < 1000 && images.reads < 25; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds{5});
  }
  EXPECT_EQ(images.reads, 25);
}

TEST(Loader, CanBeDestroyedAtAnyTime) {
  const Watched images{40};
  for (int taken = 0; taken < 12; ++taken) {
    Loader loader{images, options(3, ViewKind::Whole), in_turn(40, 5), 0, 1000};
    for (int i = 0; i < taken; ++i) ASSERT_TRUE(loader.next().ok());
  }
  const Loader unused{images, options(3, ViewKind::Whole), in_turn(40, 5), 7, 7};
}

TEST(Loader, LeavesOutBrokenImagesAndReportsEachOnce) {
  Watched images{40};
  images.broken = 3;
  for (const int threads : {0, 1, 4}) {
    Loader loader{images, options(threads, ViewKind::Whole), in_turn(40, 8), 0, 15};
    const MemoryDataset good = some_images(40);
    std::size_t position = 0;
    while (const Batch* const batch = loader.next().value()) {
      std::size_t next = 0;
      for (std::size_t i = 0; i < 8; ++i, ++position) {
        if (position % 40 % 10 == 3) continue;
        ASSERT_EQ(batch->labels[next], static_cast<std::int64_t>(position % 40 % 10));
        const std::uint8_t pixel = good.pixels()[position % 40 * batch->image_size()];
        ASSERT_NEAR(batch->images[next * batch->image_size()], (pixel - 100.0) / 50, 1e-6);
        ++next;
      }
      EXPECT_EQ(batch->count, next);
    }
    EXPECT_EQ(loader.skipped(),
              (std::vector<std::string>{"sample 3 is broken", "sample 13 is broken",
                                        "sample 23 is broken", "sample 33 is broken"}));
  }
}

TEST(Loader, TooManyBrokenImagesAreAnError) {
  Watched images{40};
  images.broken = 3;
  for (const int threads : {0, 3}) {
    LoaderOptions few = options(threads, ViewKind::Whole);
    few.most_broken = 2;
    Loader loader{images, few, in_turn(40, 8), 0, 15};
    EXPECT_TRUE(loader.next().ok());
    EXPECT_TRUE(loader.next().ok());
    for (int i = 0; i < 2; ++i) {
      EXPECT_EQ(loader.next().status().message(),
                "more than 2 images are broken, the last: sample 23 is broken");
    }
  }
}

TEST(Loader, ABatchOfBrokenImagesIsAnErrorUnlessItMayBeEmpty) {
  Watched images{40};
  images.broken = 3;
  LoaderOptions strict = options(1, ViewKind::Whole);
  Loader training{images, strict, in_turn(40, 1), 3, 5};
  EXPECT_EQ(training.next().status().message(),
            "none of a batch's 1 images can be used: sample 3 is broken");
  strict.may_be_empty = true;
  Loader evaluation{images, strict, in_turn(40, 1), 3, 5};
  EXPECT_EQ(evaluation.next().value()->count, 0U);
  EXPECT_EQ(evaluation.next().value()->count, 1U);
  EXPECT_EQ(evaluation.next().value(), nullptr);
}

// A rank that has no samples in the last evaluation batch.
TEST(Loader, ABatchMayHaveNoSamples) {
  const MemoryDataset images = some_images(4);
  for (const int threads : {0, 2}) {
    Loader loader{images, options(threads, ViewKind::Whole), in_turn(4, 0), 0, 9};
    EXPECT_EQ(take_all(loader).counts, std::vector<std::size_t>(9, 0));
  }
}

TEST(Loader, AnExceptionInAWorkerIsAnError) {
  Watched images{40};
  images.throws = true;
  Loader loader{images, options(2, ViewKind::Whole), in_turn(40, 8), 0, 15};
  EXPECT_EQ(loader.next().status().message(), "no more");
  EXPECT_EQ(loader.next().status().message(), "no more");
}

}  // namespace
}  // namespace sluice::data
