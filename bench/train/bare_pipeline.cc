#include "bench/train/bare_pipeline.h"

#include <turbojpeg.h>

#include "sluice/status.h"

namespace sluice::bench {
namespace {

// Bilinear, in whole numbers of 1/256.
void resize(const std::uint8_t* from, int height, int width, int side, std::uint8_t* out) {
  for (int y = 0; y < side; ++y) {
    const int row = y * (height - 1) * 256 / side;
    const std::uint8_t* const upper = from + static_cast<std::ptrdiff_t>(row >> 8) * width * 3;
    const std::uint8_t* const lower = upper + std::ptrdiff_t{width} * 3;
    const int down = row & 255;
    for (int x = 0; x < side; ++x) {
      const int column = x * (width - 1) * 256 / side;
      const int across = column & 255;
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(column >> 8) * 3;
      for (std::ptrdiff_t c = at; c < at + 3; ++c) {
        const int above = upper[c] * (256 - across) + upper[c + 3] * across;
        const int below = lower[c] * (256 - across) + lower[c + 3] * across;
        *out++ = static_cast<std::uint8_t>((above * (256 - down) + below * down) >> 16);
      }
    }
  }
}

}  // namespace

BarePipeline::BarePipeline() : handle_{tjInitDecompress()} {}
BarePipeline::~BarePipeline() { tjDestroy(handle_); }

std::span<const std::uint8_t> BarePipeline::run(std::span<const std::uint8_t> file, int side) {
  int width = 0;
  int height = 0;
  int subsampling = 0;
  int colors = 0;
  const auto bytes = static_cast<unsigned long>(file.size());
  bool ok =
      tjDecompressHeader3(handle_, file.data(), bytes, &width, &height, &subsampling, &colors) == 0;
  decoded_.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(height) * 3);
  ok = ok && tjDecompress2(handle_, file.data(), bytes, decoded_.data(), width, 0, height, TJPF_RGB,
                           TJFLAG_ACCURATEDCT) == 0;
  if (!ok) throw Error{Status{Code::InvalidInput, tjGetErrorStr2(handle_)}};
  resized_.resize(static_cast<std::size_t>(side) * static_cast<std::size_t>(side) * 3);
  resize(decoded_.data(), height, width, side, resized_.data());
  return resized_;
}

}  // namespace sluice::bench
