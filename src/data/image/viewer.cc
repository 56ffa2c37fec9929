#include "data/image/viewer.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/format.h"
#include "base/random.h"

namespace sluice::data {
namespace {

// Writes one plane, shifted. `convert` turns pixels into numbers.
template <class Pixel, class Convert>
void shift_plane(const Pixel* plane, int height, int width, const Shift& shift,
                 const Convert& convert, float* out) {
  // Columns of the view, before it is mirrored, that lie in the image.
  const int first = std::clamp(-shift.right, 0, width);
  const int last = std::clamp(width - shift.right, first, width);
  for (int y = 0; y < height; ++y, out += width) {
    const int row = y + shift.down;
    if (row < 0 || row >= height) {
      std::fill_n(out, width, 0.0F);
      continue;
    }
    const Pixel* const pixels = plane + std::ptrdiff_t{row} * width + shift.right;
    std::fill_n(out, first, 0.0F);
    for (int x = first; x < last; ++x) out[x] = convert(pixels[x]);
    std::fill_n(out + last, width - last, 0.0F);
    if (shift.flipped) std::reverse(out, out + width);
  }
}

}  // namespace

Shift random_shift(int padding, bool flip, std::uint64_t seed, const SampleRef& ref) {
  base::Random random{base::mixed({seed, ref.epoch, ref.sample})};
  const std::uint64_t offsets = 2 * static_cast<std::uint64_t>(padding) + 1;
  Shift shift;
  shift.down = static_cast<int>(random.below(offsets)) - padding;
  shift.right = static_cast<int>(random.below(offsets)) - padding;
  shift.flipped = flip && random.below(2) == 1;
  return shift;
}

void render(const ImageView& image, const Normalization& normalization, const Shift& shift,
            float* out) {
  const auto channels = static_cast<std::size_t>(image.channels);
  assert(image.storage == Storage::Planes && normalization.mean.size() == channels);
  const std::size_t plane = image.bytes.size() / channels;
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const auto mean = static_cast<float>(normalization.mean[channel]);
    const auto scale = static_cast<float>(1 / normalization.deviation[channel]);
    shift_plane(
        image.bytes.data() + channel * plane, image.height, image.width, shift,
        [mean, scale](std::uint8_t pixel) { return (static_cast<float>(pixel) - mean) * scale; },
        out + channel * plane);
  }
}

Viewer::Viewer(const ViewOptions& options, Normalization normalization, int image,
               std::uint64_t seed)
    : options_{options}, normalization_{std::move(normalization)}, image_{image}, seed_{seed} {
  assert(image > 0);
}

Status Viewer::decode_pixels(const ImageView& stored, const Crop& crop, ImageView& pixels) {
  pixels = stored;
  if (stored.storage == Storage::File) {
    Status status = decoder_.finish(largest_divisor(crop, image_), pixels);
    if (!status.ok()) return status;
  } else if (stored.storage == Storage::Planes) {
    copy_as(Storage::Interleaved, stored, interleaved_);
    pixels = interleaved_.view();
  }
  if (static_cast<std::size_t>(pixels.channels) != normalization_.mean.size()) {
    return {Code::InvalidInput, base::format("has {} channels where {} are expected",
                                             pixels.channels, normalization_.mean.size())};
  }
  return {};
}

Status Viewer::view_shifted(const ImageView& stored, const SampleRef& ref, float* out) {
  const bool shifted = options_.kind == ViewKind::Shifted && options_.padding > 0;
  Shift shift;
  if (options_.kind == ViewKind::Shifted) {
    shift = random_shift(options_.padding, options_.flip, seed_, ref);
  }
  // Data sets in memory take this path: it must cost next to nothing.
  if (stored.storage == Storage::Planes && stored.height == image_ && stored.width == image_ &&
      static_cast<std::size_t>(stored.channels) == normalization_.mean.size()) {
    render(stored, normalization_, shift, out);
    return {};
  }
  ImageView pixels;
  Status status = decode_pixels(stored, centre_crop(1, stored.height, stored.width), pixels);
  if (!status.ok()) return status;
  const Crop crop = centre_crop(1, pixels.height, pixels.width);
  if (!shifted) {
    resizer_.resize(pixels, crop, {image_, image_}, shift.flipped, normalization_, out);
    return {};
  }
  const std::size_t channels = normalization_.mean.size();
  const std::size_t plane = static_cast<std::size_t>(image_) * static_cast<std::size_t>(image_);
  resized_.resize(channels * plane);
  resizer_.resize(pixels, crop, {image_, image_}, false, normalization_, resized_.data());
  for (std::size_t channel = 0; channel < channels; ++channel) {
    shift_plane(
        resized_.data() + channel * plane, image_, image_, shift, [](float value) { return value; },
        out + channel * plane);
  }
  return {};
}

Status Viewer::view(const ImageView& stored, const SampleRef& ref, float* out) {
  ImageView sized = stored;
  if (stored.storage == Storage::File) {
    Status status = decoder_.begin(stored.bytes);
    if (!status.ok()) return status;
    sized.height = decoder_.height();
    sized.width = decoder_.width();
  }
  if (options_.kind == ViewKind::Whole || options_.kind == ViewKind::Shifted) {
    return view_shifted(sized, ref, out);
  }
  Crop crop;
  bool flipped = false;
  if (options_.kind == ViewKind::ResizedCrop) {
    base::Random random{base::mixed({seed_, ref.epoch, ref.sample})};
    crop = random_crop(options_.crop, sized.height, sized.width, random);
    flipped = options_.flip && random.below(2) == 1;
  } else {
    crop = centre_crop(options_.centre, sized.height, sized.width);
  }
  ImageView pixels;
  Status status = decode_pixels(sized, crop, pixels);
  if (!status.ok()) return status;
  // A JPEG file may have been decoded at a fraction of its size.
  const double vertical = static_cast<double>(pixels.height) / sized.height;
  const double horizontal = static_cast<double>(pixels.width) / sized.width;
  crop = {crop.top * vertical, crop.left * horizontal, crop.height * vertical,
          crop.width * horizontal};
  resizer_.resize(pixels, crop, {image_, image_}, flipped, normalization_, out);
  return {};
}

}  // namespace sluice::data
