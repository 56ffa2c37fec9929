#include "data/image/viewer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/format.h"
#include "base/random.h"
#include "data/image/augment.h"

namespace sluice::data {
namespace {

void interleave(const StoredImage& stored, Pixels& out) {
  out.resize(stored.channels, stored.height, stored.width);
  const auto channels = static_cast<std::size_t>(stored.channels);
  const std::size_t plane = out.values.size() / channels;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const std::uint8_t* const from = stored.bytes.data() + channel * plane;
    for (std::size_t i = 0; i < plane; ++i) out.values[i * channels + channel] = from[i];
  }
}

// What lies outside is the mean, 0.
void move(const std::vector<float>& from, int side, int padding, const View& view, float* out) {
  const int right = view.left - padding;
  const std::size_t rows = from.size() / static_cast<std::size_t>(side);
  for (std::size_t row = 0; row < rows; ++row, out += side) {
    const int y = static_cast<int>(row % static_cast<std::size_t>(side)) + view.top - padding;
    std::fill_n(out, side, 0.0F);
    if (y < 0 || y >= side) continue;
    const std::size_t plane = row / static_cast<std::size_t>(side);
    const float* const line =
        from.data() + (plane * static_cast<std::size_t>(side) + static_cast<std::size_t>(y)) *
                          static_cast<std::size_t>(side);
    for (int x = std::max(0, -right); x < std::min(side, side - right); ++x)
      out[x] = line[x + right];
    if (view.flipped) std::reverse(out, out + side);
  }
}

}  // namespace

Viewer::Viewer(const ViewOptions& options, Normalization normalization, int image,
               std::uint64_t seed)
    : options_{options}, normalization_{std::move(normalization)}, image_{image}, seed_{seed} {
  assert(image > 0);
}

Status Viewer::pixels_of(const StoredImage& stored, const Crop& crop, PixelView& pixels) {
  switch (stored.storage) {
    case Storage::File: {
      Status status = decoder_.finish(largest_divisor(crop, image_), pixels);
      if (!status.ok()) return status;
      break;
    }
    case Storage::Planes:
      interleave(stored, interleaved_);
      pixels = interleaved_.view();
      break;
    case Storage::Interleaved:
      pixels = {stored.bytes.data(), stored.channels, stored.height, stored.width};
      break;
  }
  if (static_cast<std::size_t>(pixels.channels) != normalization_.mean.size()) {
    return {Code::InvalidInput, base::format("has {} channels where {} are expected",
                                             pixels.channels, normalization_.mean.size())};
  }
  return {};
}

Status Viewer::shifted(const StoredImage& stored, const SampleRef& which, float* out) {
  View view;
  int padding = 0;
  if (options_.kind == ViewKind::Shifted) {
    padding = options_.padding;
    view =
        random_view({.padding = padding, .flip = options_.flip}, seed_, which.epoch, which.sample);
  }
  // Sets that are kept in memory come this way: it must cost next to nothing.
  if (stored.storage == Storage::Planes && stored.height == image_ && stored.width == image_ &&
      static_cast<std::size_t>(stored.channels) == normalization_.mean.size()) {
    render(stored, normalization_, padding, view, out);
    return {};
  }
  const Crop square = centre_crop(1, stored.height, stored.width);
  PixelView pixels;
  Status status = pixels_of(stored, square, pixels);
  if (!status.ok()) return status;
  const Crop crop = centre_crop(1, pixels.height, pixels.width);
  if (padding == 0) {
    resizer_.resize(pixels, crop, {image_, image_}, view.flipped, normalization_, out);
    return {};
  }
  const auto side = static_cast<std::size_t>(image_);
  unmoved_.resize(normalization_.mean.size() * side * side);
  resizer_.resize(pixels, crop, {image_, image_}, false, normalization_, unmoved_.data());
  move(unmoved_, image_, padding, view, out);
  return {};
}

Status Viewer::view(const StoredImage& stored, const SampleRef& which, float* out) {
  StoredImage sized = stored;
  if (stored.storage == Storage::File) {
    Status status = decoder_.begin(stored.bytes);
    if (!status.ok()) return status;
    sized.height = decoder_.height();
    sized.width = decoder_.width();
  }
  if (options_.kind == ViewKind::Whole || options_.kind == ViewKind::Shifted) {
    return shifted(sized, which, out);
  }
  Crop crop;
  bool flipped = false;
  if (options_.kind == ViewKind::ResizedCrop) {
    base::Random random{base::mixed({seed_, which.epoch, which.sample})};
    crop = random_crop(options_.crop, sized.height, sized.width, random);
    flipped = options_.flip && random.below(2) == 1;
  } else {
    crop = centre_crop(options_.centre, sized.height, sized.width);
  }
  PixelView pixels;
  Status status = pixels_of(sized, crop, pixels);
  if (!status.ok()) return status;
  // A JPEG may have come at a part of its size.
  const double down = static_cast<double>(pixels.height) / sized.height;
  const double across = static_cast<double>(pixels.width) / sized.width;
  crop = {crop.top * down, crop.left * across, crop.height * down, crop.width * across};
  resizer_.resize(pixels, crop, {image_, image_}, flipped, normalization_, out);
  return {};
}

}  // namespace sluice::data
