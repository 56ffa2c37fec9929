#include "data/dataset.h"

#include <cassert>
#include <utility>

#include "base/format.h"

namespace sluice::data {

Status Dataset::read(std::size_t sample, std::vector<std::uint8_t>& buffer,
                     ImageView& stored) const {
  Image image;
  image.pixels.swap(buffer);
  Status status = decode(sample, image);
  buffer.swap(image.pixels);
  stored = {Storage::Planes, image.channels, image.height, image.width,
            std::span{buffer}.first(status.ok() ? image.size() : 0)};
  return status;
}

std::string Dataset::name(std::size_t sample) const { return base::format("sample {}", sample); }

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

ImageView MemoryDataset::stored(std::size_t sample) const {
  return {Storage::Planes, channels_, height_, width_,
          std::span{pixels_}.subspan(sample * image_size(), image_size())};
}

Status MemoryDataset::add(const Image& image, int label) {
  assert(image.storage == Storage::Planes);
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
  const ImageView view = image.view();
  pixels_.insert(pixels_.end(), view.bytes.begin(), view.bytes.end());
  labels_.push_back(label);
  return {};
}

Status MemoryDataset::decode(std::size_t sample, Image& image) const {
  copy_as(Storage::Planes, stored(sample), image);
  return {};
}

Status MemoryDataset::read(std::size_t sample, std::vector<std::uint8_t>& /*buffer*/,
                           ImageView& view) const {
  view = stored(sample);
  return {};
}

Normalization MemoryDataset::statistics() const {
  PixelSums sums;
  for (std::size_t sample = 0; sample < size(); ++sample) sums.add(stored(sample));
  return sums.statistics(channels_);
}

}  // namespace sluice::data
