// image_decoder.h - the bytes of a JPEG or PNG file as pixels.
//
// What a file is, its first bytes say, not its name: ImageNet has a PNG called .JPEG.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/image/jpeg.h"
#include "data/image/pixels.h"
#include "data/image/png.h"
#include "sluice/status.h"

namespace sluice::data {

// Thread-safety: one thread at a time; make one for each.
class ImageDecoder {
 public:
  // Reads the header. `file` must live until finish(). A status does not know the file's name.
  Status begin(std::span<const std::uint8_t> file);
  // REQUIRES: begin() went well.
  int height() const { return height_; }
  int width() const { return width_; }
  // Red, green, blue; valid until the next begin(). At 1/divisor of its size, rounded up, where the
  // format can (JPEG), else whole. REQUIRES: divisor is 1, 2, 4 or 8.
  Status finish(int divisor, PixelView& pixels);

  // All at once, plane after plane.
  Status decode(std::span<const std::uint8_t> file, Image& image);

 private:
  JpegDecoder jpeg_;
  PngDecoder png_;
  bool is_png_ = false;
  int height_ = 0;
  int width_ = 0;
  Pixels pixels_;
};

}  // namespace sluice::data
