// jpeg.h - JPEG files as images, by libjpeg-turbo.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/status.h"
#include "train/data/dataset.h"

namespace sluice {

// Thread-safety: one thread at a time; make one for each.
class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Three channels, red, green, blue, also where the file has one. The status says what is wrong
  // with the bytes and does not know their name. A file that ends early is wrong.
  Status decode(std::span<const std::uint8_t> file, Image& image);

 private:
  Status refuse(std::string why);

  void* handle_;
  std::vector<std::uint8_t> interleaved_;
};

}  // namespace sluice
