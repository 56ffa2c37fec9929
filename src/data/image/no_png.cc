// no_png.cc - replaces png.cc in a build without libpng.
#include "data/image/image_decoder.h"

namespace sluice::data {
namespace {

Status refuse() {
  return {Code::InvalidInput,
          "cannot be read: Sluice was built without PNG (install libpng-dev and build it again)"};
}

}  // namespace

struct PngDecoder::State {};

PngDecoder::PngDecoder() = default;
PngDecoder::~PngDecoder() = default;
Status PngDecoder::begin(std::span<const std::uint8_t>, int&, int&) { return refuse(); }
Status PngDecoder::finish(Image&) { return refuse(); }

}  // namespace sluice::data
