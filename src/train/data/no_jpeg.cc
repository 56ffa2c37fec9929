// no_jpeg.cc - stands in for jpeg.cc where libjpeg-turbo was not found.
#include "train/data/jpeg.h"

namespace sluice {

JpegDecoder::JpegDecoder() : handle_{nullptr} {}

JpegDecoder::~JpegDecoder() = default;

Status JpegDecoder::decode(std::span<const std::uint8_t>, Image&) {
  return {Code::InvalidInput,
          "cannot be read: Sluice was built without JPEG (install libturbojpeg0-dev and build it "
          "again)"};
}

}  // namespace sluice
