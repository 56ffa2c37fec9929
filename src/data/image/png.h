// png.h - PNG files as pixels, by libpng.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "data/image/pixels.h"
#include "sluice/status.h"

namespace sluice::data {

// Thread-safety: one thread at a time; make one for each.
class PngDecoder {
 public:
  PngDecoder();
  ~PngDecoder();
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  // As JpegDecoder's. What is transparent is seen on white.
  Status begin(std::span<const std::uint8_t> file, int& height, int& width);
  Status finish(Pixels& pixels);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace sluice::data
