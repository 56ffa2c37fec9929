// no_jpeg.cc - replaces jpeg.cc in a build without libjpeg-turbo.
#include "data/image/image_decoder.h"

namespace sluice::data {
namespace {

Status without_jpeg(const char* what) {
  return {Code::InvalidInput,
          std::string{what} +
              ": Sluice was built without JPEG (install libturbojpeg0-dev and build it again)"};
}

}  // namespace

JpegDecoder::JpegDecoder() : handle_{nullptr} {}
JpegDecoder::~JpegDecoder() = default;
Status JpegDecoder::begin(std::span<const std::uint8_t>, int&, int&) {
  return without_jpeg("cannot be read");
}
Status JpegDecoder::finish(int, Image&) { return without_jpeg("cannot be read"); }

JpegEncoder::JpegEncoder() : handle_{nullptr} {}
JpegEncoder::~JpegEncoder() = default;
Status JpegEncoder::encode(const ImageView&, int, std::vector<std::uint8_t>&) {
  return without_jpeg("cannot be written as JPEG");
}

}  // namespace sluice::data
