#include "data/image/image.h"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace sluice::data {

void Image::resize(Storage new_storage, int new_channels, int new_height, int new_width) {
  storage = new_storage;
  channels = new_channels;
  height = new_height;
  width = new_width;
  pixels.resize(size());
}

void copy_as(Storage storage, const ImageView& from, Image& to) {
  assert(storage != Storage::File && from.storage != Storage::File);
  to.resize(storage, from.channels, from.height, from.width);
  if (storage == from.storage) {
    std::copy_n(from.bytes.begin(), to.size(), to.pixels.begin());
    return;
  }
  const std::size_t plane = to.plane();
  const auto channels = static_cast<std::size_t>(from.channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    if (storage == Storage::Interleaved) {
      const std::uint8_t* const in = from.bytes.data() + channel * plane;
      for (std::size_t i = 0; i < plane; ++i) to.pixels[i * channels + channel] = in[i];
    } else {
      std::uint8_t* const out = to.pixels.data() + channel * plane;
      const std::uint8_t* const in = from.bytes.data() + channel;
      for (std::size_t i = 0; i < plane; ++i) out[i] = in[i * channels];
    }
  }
}

void PixelSums::add(const ImageView& image) {
  assert(image.storage != Storage::File);
  const auto channels = static_cast<std::size_t>(image.channels);
  const std::size_t plane = image.bytes.size() / channels;
  const bool planes = image.storage == Storage::Planes;
  const std::size_t step = planes ? 1 : channels;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const std::uint8_t* const values = image.bytes.data() + (planes ? channel * plane : channel);
    std::uint64_t sum = 0;
    std::uint64_t squares = 0;
    for (std::size_t i = 0; i < plane; ++i) {
      const std::uint64_t value = values[i * step];
      sum += value;
      squares += value * value;
    }
    sum_[channel] += sum;
    squares_[channel] += squares;
  }
  pixels_ += plane;
}

void PixelSums::add(const PixelSums& other) {
  for (std::size_t channel = 0; channel < sum_.size(); ++channel) {
    sum_[channel] += other.sum_[channel];
    squares_[channel] += other.squares_[channel];
  }
  pixels_ += other.pixels_;
}

Normalization PixelSums::statistics(int channels) const {
  Normalization result;
  const auto count = static_cast<double>(std::max<std::uint64_t>(1, pixels_));
  for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels); ++channel) {
    const double mean = static_cast<double>(sum_[channel]) / count;
    const double variance = static_cast<double>(squares_[channel]) / count - mean * mean;
    result.mean.push_back(mean);
    // Images of a single shade have no deviation. Half a pixel value stands for 0.
    result.deviation.push_back(std::sqrt(std::max(variance, 0.25)));
  }
  return result;
}

}  // namespace sluice::data
