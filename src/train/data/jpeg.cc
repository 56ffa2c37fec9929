#include "train/data/jpeg.h"

#include <fmt/format.h>
#include <turbojpeg.h>

#include <string_view>
#include <utility>

namespace sluice {
namespace {

constexpr int kChannels = 3;
constexpr std::int64_t kMostPixels = 1 << 28;

}  // namespace

JpegDecoder::JpegDecoder() : handle_{tjInitDecompress()} {
  if (handle_ == nullptr) throw Error{Status{Code::NoMemory, "no memory for a JPEG decoder"}};
}

JpegDecoder::~JpegDecoder() { tjDestroy(handle_); }

// A handle that has failed may fail again at the next file, be it good.
Status JpegDecoder::refuse(std::string why) {
  void* const fresh = tjInitDecompress();
  if (fresh != nullptr) {
    tjDestroy(handle_);
    handle_ = fresh;
  }
  return {Code::InvalidInput, std::move(why)};
}

Status JpegDecoder::decode(std::span<const std::uint8_t> file, Image& image) {
  const auto bytes = static_cast<unsigned long>(file.size());
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colors = 0;
  if (file.empty() || tjDecompressHeader3(handle_, file.data(), bytes, &width, &height,
                                          &subsampling, &colors) != 0) {
    return refuse("is not a JPEG image");
  }
  if (std::int64_t{width} * height > kMostPixels) {
    return refuse(fmt::format("claims to be {}x{} pixels", width, height));
  }
  image.channels = kChannels;
  image.height = height;
  image.width = width;
  image.pixels.resize(image.size());
  interleaved_.resize(image.size());
  if (tjDecompress2(handle_, file.data(), bytes, interleaved_.data(), width, 0, height, TJPF_RGB,
                    TJFLAG_ACCURATEDCT) != 0) {
    // Stray bytes and the like are warnings, and common; pixels that are not there are an error.
    const std::string_view why = tjGetErrorStr2(handle_);
    const bool cut = why.find("Premature end") != std::string_view::npos;
    if (tjGetErrorCode(handle_) == TJERR_FATAL || cut) {
      return refuse(fmt::format("is a broken JPEG image: {}", why));
    }
  }
  const std::size_t plane = image.plane();
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t channel = 0; channel < kChannels; ++channel) {
      image.pixels[channel * plane + i] = interleaved_[i * kChannels + channel];
    }
  }
  return {};
}

}  // namespace sluice
