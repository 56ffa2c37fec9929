#include "data/formats/random_images.h"

#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "base/text.h"
#include "data/formats/memory_dataset.h"

namespace sluice::data {
namespace {

constexpr int kChannels = 3;
constexpr int kLeastSide = 8;
constexpr int kMostSide = 512;

MemoryDataset random_images(int count, int side, std::uint64_t seed) {
  const std::size_t size = static_cast<std::size_t>(kChannels) * side * side;
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(count) * size);
  base::Random random{base::mixed({seed})};
  for (std::uint8_t& pixel : pixels) pixel = static_cast<std::uint8_t>(random.next());
  std::vector<int> labels;
  for (int i = 0; i < count; ++i) labels.push_back(i % kRandomClasses);
  return {kRandomClasses, kChannels, side, side, std::move(pixels), std::move(labels)};
}

}  // namespace

Result<Data> open_random(const std::filesystem::path& side) {
  const auto number =
      base::parse_whole(side.string(), kLeastSide, kMostSide, "the side of random images");
  if (!number.ok()) return number.status();
  const int pixels = static_cast<int>(number.value());
  Data data;
  MemoryDataset train = random_images(kRandomTrain, pixels, 1);
  data.normalization = train.statistics();
  data.train = std::make_unique<MemoryDataset>(std::move(train));
  data.validation = std::make_unique<MemoryDataset>(random_images(kRandomValidation, pixels, 2));
  for (int i = 0; i < kRandomClasses; ++i) data.classes.push_back(base::format("class {}", i));
  data.channels = kChannels;
  data.height = pixels;
  data.width = pixels;
  data.description = base::format("{} random images of {}x{}, {} to validate, {} classes",
                                  kRandomTrain, pixels, pixels, kRandomValidation, kRandomClasses);
  return data;
}

}  // namespace sluice::data
