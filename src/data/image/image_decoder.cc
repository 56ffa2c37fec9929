#include "data/image/image_decoder.h"

#include <algorithm>
#include <array>

namespace sluice::data {
namespace {

constexpr std::array<std::uint8_t, 2> kJpeg = {0xff, 0xd8};
constexpr std::array<std::uint8_t, 4> kPng = {0x89, 'P', 'N', 'G'};

template <std::size_t size>
bool begins_with(std::span<const std::uint8_t> file, const std::array<std::uint8_t, size>& bytes) {
  return file.size() >= size && std::equal(bytes.begin(), bytes.end(), file.begin());
}

}  // namespace

Status ImageDecoder::begin(std::span<const std::uint8_t> file) {
  is_png_ = begins_with(file, kPng);
  if (is_png_) return png_.begin(file, height_, width_);
  if (begins_with(file, kJpeg)) return jpeg_.begin(file, height_, width_);
  return {Code::InvalidInput, file.empty() ? "is empty" : "is neither a JPEG nor a PNG image"};
}

Status ImageDecoder::finish(int divisor, ImageView& pixels) {
  Status status = is_png_ ? png_.finish(pixels_) : jpeg_.finish(divisor, pixels_);
  pixels = pixels_.view();
  return status;
}

Status ImageDecoder::decode(std::span<const std::uint8_t> file, Image& image) {
  ImageView pixels;
  Status status = begin(file);
  if (status.ok()) status = finish(1, pixels);
  if (!status.ok()) return status;
  copy_as(Storage::Planes, pixels, image);
  return {};
}

}  // namespace sluice::data
