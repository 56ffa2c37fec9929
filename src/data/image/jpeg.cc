#include <turbojpeg.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/format.h"
#include "data/image/image_decoder.h"

namespace sluice::data {
namespace {

constexpr std::int64_t kMostPixels = 1 << 28;

// Programs of Adobe invert CMYK values and mark the file with a segment of their own.
bool written_by_adobe(std::span<const std::uint8_t> file) {
  constexpr std::string_view kName = "Adobe";
  for (std::size_t at = 2; at + 4 + kName.size() < file.size() && file[at] == 0xff;) {
    const std::uint8_t marker = file[at + 1];
    if (marker == 0xda) return false;
    if (marker == 0xee && std::equal(kName.begin(), kName.end(), file.begin() + at + 4)) {
      return true;
    }
    at += 2 + (std::size_t{file[at + 2]} << 8U | file[at + 3]);
  }
  return false;
}

void convert_inks(std::span<const std::uint8_t> inks, bool inverted,
                  std::vector<std::uint8_t>& out) {
  const unsigned flip = inverted ? 0U : 255U;
  for (std::size_t i = 0, next = 0; i + 3 < inks.size(); i += 4) {
    const unsigned black = inks[i + 3] ^ flip;
    for (std::size_t channel = 0; channel < 3; ++channel) {
      out[next++] = static_cast<std::uint8_t>(((inks[i + channel] ^ flip) * black + 127) / 255);
    }
  }
}

}  // namespace

JpegDecoder::JpegDecoder() : handle_{tjInitDecompress()} {
  if (handle_ == nullptr) throw Error{Status{Code::NoMemory, "no memory for a JPEG decoder"}};
}

JpegDecoder::~JpegDecoder() { tjDestroy(handle_); }

// A handle that has failed may fail again at the next file, even at a good one: replace it.
Status JpegDecoder::refuse(std::string why) {
  void* const fresh = tjInitDecompress();
  if (fresh != nullptr) {
    tjDestroy(handle_);
    handle_ = fresh;
  }
  return {Code::InvalidInput, std::move(why)};
}

Status JpegDecoder::begin(std::span<const std::uint8_t> file, int& height, int& width) {
  int subsampling = 0;
  int colors = 0;
  if (file.empty() ||
      tjDecompressHeader3(handle_, file.data(), static_cast<unsigned long>(file.size()), &width_,
                          &height_, &subsampling, &colors) != 0) {
    return refuse("is a broken JPEG image: it has no header");
  }
  if (std::int64_t{width_} * height_ > kMostPixels) {
    return refuse(base::format("claims to be {}x{} pixels: at most {} pixels are supported", width_,
                               height_, kMostPixels));
  }
  file_ = file;
  cmyk_ = colors == TJCS_CMYK || colors == TJCS_YCCK;
  height = height_;
  width = width_;
  return {};
}

Status JpegDecoder::finish(int divisor, Image& pixels) {
  const tjscalingfactor factor{1, divisor};
  const int width = TJSCALED(width_, factor);
  const int height = TJSCALED(height_, factor);
  pixels.resize(Storage::Interleaved, 3, height, width);
  if (cmyk_) inks_.resize(pixels.pixels.size() / 3 * 4);
  if (tjDecompress2(handle_, file_.data(), static_cast<unsigned long>(file_.size()),
                    cmyk_ ? inks_.data() : pixels.pixels.data(), width, 0, height,
                    cmyk_ ? TJPF_CMYK : TJPF_RGB, TJFLAG_ACCURATEDCT) != 0) {
    // Stray bytes are common, and only warnings. Missing pixels are an error.
    const std::string_view why = tjGetErrorStr2(handle_);
    const bool cut = why.find("Premature end") != std::string_view::npos;
    if (tjGetErrorCode(handle_) == TJERR_FATAL || cut) {
      return refuse(base::format("is a broken JPEG image: {}", why));
    }
  }
  if (cmyk_) convert_inks(inks_, written_by_adobe(file_), pixels.pixels);
  return {};
}

JpegEncoder::JpegEncoder() : handle_{tjInitCompress()} {
  if (handle_ == nullptr) throw Error{Status{Code::NoMemory, "no memory for a JPEG encoder"}};
}

JpegEncoder::~JpegEncoder() { tjDestroy(handle_); }

Status JpegEncoder::encode(const ImageView& pixels, int quality, std::vector<std::uint8_t>& file) {
  file.resize(tjBufSize(pixels.width, pixels.height, TJSAMP_420));
  auto* bytes = file.data();
  auto size = static_cast<unsigned long>(file.size());
  if (tjCompress2(handle_, pixels.bytes.data(), pixels.width, 0, pixels.height, TJPF_RGB, &bytes,
                  &size, TJSAMP_420, quality, TJFLAG_ACCURATEDCT | TJFLAG_NOREALLOC) != 0) {
    return {Code::InvalidInput, base::format("cannot be compressed: {}", tjGetErrorStr2(handle_))};
  }
  file.resize(size);
  return {};
}

}  // namespace sluice::data
