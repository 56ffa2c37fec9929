// no_png.cc - stands in for png.cc where libpng was not found.
#include "data/image/png.h"

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
Status PngDecoder::finish(Pixels&) { return refuse(); }

}  // namespace sluice::data
