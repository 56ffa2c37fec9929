#include "data/formats/memory_dataset.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <utility>

#include "base/format.h"

namespace sluice::data {

MemoryDataset::MemoryDataset(int classes, int channels, int height, int width,
                             std::vector<std::uint8_t> pixels, std::vector<int> labels)
    : classes_{classes},
      channels_{channels},
      height_{height},
      width_{width},
      pixels_{std::move(pixels)},
      labels_{std::move(labels)} {
  assert(pixels_.size() == labels_.size() * image_size());
}

std::size_t MemoryDataset::image_size() const {
  return static_cast<std::size_t>(channels_) * static_cast<std::size_t>(height_) *
         static_cast<std::size_t>(width_);
}

Status MemoryDataset::add(const Image& image, int label) {
  if (labels_.empty()) {
    channels_ = image.channels;
    height_ = image.height;
    width_ = image.width;
  }
  if (image.channels != channels_ || image.height != height_ || image.width != width_) {
    return {Code::InvalidInput,
            base::format("is {}x{} where others are {}x{}: bring all images to one size",
                         image.width, image.height, width_, height_)};
  }
  pixels_.insert(pixels_.end(), image.pixels.begin(),
                 image.pixels.begin() + static_cast<std::ptrdiff_t>(image_size()));
  labels_.push_back(label);
  return {};
}

Status MemoryDataset::decode(std::size_t sample, Image& image) const {
  image.channels = channels_;
  image.height = height_;
  image.width = width_;
  image.pixels.resize(image_size());
  std::copy_n(pixels_.begin() + static_cast<std::ptrdiff_t>(sample * image_size()), image_size(),
              image.pixels.begin());
  return {};
}

Status MemoryDataset::read(std::size_t sample, std::vector<std::uint8_t>& /*buffer*/,
                           StoredImage& stored) const {
  stored = {Storage::Planes, channels_, height_, width_,
            std::span{pixels_}.subspan(sample * image_size(), image_size())};
  return {};
}

Normalization MemoryDataset::statistics() const {
  Normalization result;
  const std::size_t plane = image_size() / static_cast<std::size_t>(std::max(1, channels_));
  const auto count = static_cast<double>(plane * size());
  for (int channel = 0; channel < channels_; ++channel) {
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (std::size_t sample = 0; sample < size(); ++sample) {
      const std::uint8_t* const pixels =
          pixels_.data() + sample * image_size() + static_cast<std::size_t>(channel) * plane;
      for (std::size_t i = 0; i < plane; ++i) {
        sum += pixels[i];
        squares += std::uint64_t{pixels[i]} * pixels[i];
      }
    }
    const double mean = static_cast<double>(sum) / count;
    const double variance = static_cast<double>(squares) / count - mean * mean;
    result.mean.push_back(mean);
    // Images of one shade have none; half a step of a pixel is as good as zero.
    result.deviation.push_back(std::sqrt(std::max(variance, 0.25)));
  }
  return result;
}

}  // namespace sluice::data
