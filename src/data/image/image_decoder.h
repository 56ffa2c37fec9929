// image_decoder.h - decodes JPEG and PNG files with libjpeg-turbo and libpng, and encodes JPEG.
//
// The first bytes of a file decide its format, not its name: ImageNet has a PNG file with a name
// that ends in .JPEG.
//
// No status names the file: the caller knows its name.
// Thread-safety of all classes: one thread at a time; make one object for each thread.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image/image.h"
#include "sluice/status.h"

namespace sluice::data {

class JpegDecoder {
 public:
  JpegDecoder();
  ~JpegDecoder();
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // Reads the header. `file` must live until finish().
  Status begin(std::span<const std::uint8_t> file, int& height, int& width);
  // Decodes to interleaved red, green and blue, also from a grey or CMYK file, at 1/divisor of the
  // size, rounded up. A file that ends early is an error.
  // REQUIRES: begin() succeeded; divisor is 1, 2, 4 or 8.
  Status finish(int divisor, Image& pixels);

 private:
  Status refuse(std::string why);

  void* handle_;
  std::span<const std::uint8_t> file_;
  int height_ = 0;
  int width_ = 0;
  bool cmyk_ = false;
  std::vector<std::uint8_t> inks_;
};

class JpegEncoder {
 public:
  JpegEncoder();
  ~JpegEncoder();
  JpegEncoder(const JpegEncoder&) = delete;
  JpegEncoder& operator=(const JpegEncoder&) = delete;

  // Encodes with colours at half the resolution, at a quality from 1 to 100.
  // REQUIRES: three interleaved channels.
  Status encode(const ImageView& pixels, int quality, std::vector<std::uint8_t>& file);

 private:
  void* handle_;
};

class PngDecoder {
 public:
  PngDecoder();
  ~PngDecoder();
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  // As in JpegDecoder, always at full size. Transparent pixels lie on white.
  Status begin(std::span<const std::uint8_t> file, int& height, int& width);
  Status finish(Image& pixels);

 private:
  struct State;  // needs png.h, which a build without libpng does not have
  std::unique_ptr<State> state_;
};

// Decodes a file of either format.
class ImageDecoder {
 public:
  // Reads the header. `file` must live until finish().
  Status begin(std::span<const std::uint8_t> file);
  // REQUIRES: begin() succeeded.
  int height() const { return height_; }
  int width() const { return width_; }
  // Decodes to interleaved red, green and blue; valid until the next begin(). A JPEG file is
  // decoded at 1/divisor of its size, rounded up, a PNG file at full size.
  // REQUIRES: divisor is 1, 2, 4 or 8.
  Status finish(int divisor, ImageView& pixels);

  // Both steps at once, to planes.
  Status decode(std::span<const std::uint8_t> file, Image& image);

 private:
  JpegDecoder jpeg_;
  PngDecoder png_;
  bool is_png_ = false;
  int height_ = 0;
  int width_ = 0;
  Image pixels_;
};

}  // namespace sluice::data
