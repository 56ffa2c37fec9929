#include <png.h>

#include "base/format.h"
#include "data/image/image_decoder.h"

namespace sluice::data {
namespace {

constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 28U;

}  // namespace

struct PngDecoder::State {
  png_image image{};
};

PngDecoder::PngDecoder() : state_{std::make_unique<State>()} {}
PngDecoder::~PngDecoder() { png_image_free(&state_->image); }

Status PngDecoder::begin(std::span<const std::uint8_t> file, int& height, int& width) {
  png_image& image = state_->image;
  png_image_free(&image);
  image = {};
  image.version = PNG_IMAGE_VERSION;
  if (png_image_begin_read_from_memory(&image, file.data(), file.size()) == 0) {
    return {Code::InvalidInput, base::format("is a broken PNG image: {}", image.message)};
  }
  if (std::uint64_t{image.width} * image.height > kMostPixels) {
    return {Code::InvalidInput,
            base::format("claims to be {}x{} pixels: at most {} pixels are supported", image.width,
                         image.height, kMostPixels)};
  }
  // Values of 16 bits without a gamma are sRGB as well, not linear light.
  image.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
  image.format = PNG_FORMAT_RGB;
  height = static_cast<int>(image.height);
  width = static_cast<int>(image.width);
  return {};
}

Status PngDecoder::finish(Image& pixels) {
  png_image& image = state_->image;
  pixels.resize(Storage::Interleaved, 3, static_cast<int>(image.height),
                static_cast<int>(image.width));
  const png_color white{255, 255, 255};
  if (png_image_finish_read(&image, &white, pixels.pixels.data(), 0, nullptr) == 0) {
    return {Code::InvalidInput, base::format("is a broken PNG image: {}", image.message)};
  }
  return {};
}

}  // namespace sluice::data
