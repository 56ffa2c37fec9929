// jpeg.h - JPEG files as pixels and back, by libjpeg-turbo.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/image/pixels.h"
#include "sluice/status.h"

namespace sluice::data {

// Thread-safety: one thread at a time; make one for each.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. `file` must live until finish(). A status says what is wrong with the bytes
  // and does not know their name.
  Status begin(std::span<const std::uint8_t> file, int& height, int& width);
  // Red, green, blue, also where the file is grey or CMYK, at 1/divisor of its size, rounded up. A
  // file that ends early is wrong. REQUIRES: begin() went well; divisor is 1, 2, 4 or 8.
  Status finish(int divisor, Pixels& pixels);

 private:
  Status refuse(std::string why);

  void* handle_;
  std::span<const std::uint8_t> file_;
  int height_ = 0;
  int width_ = 0;
  bool cmyk_ = false;
  std::vector<std::uint8_t> inks_;
};

// Thread-safety: as above.
class JpegEncoder {
 public:
  JpegEncoder();
  ~JpegEncoder();
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  // Three channels, colours at half the resolution, quality 1 to 100.
  Status encode(const PixelView& pixels, int quality, std::vector<std::uint8_t>& file);

 private:
  void* handle_;
};

}  // namespace sluice::data
