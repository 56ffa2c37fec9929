// pixels.h - an image as decoders leave it: 8 bits a value, pixel after pixel, rows from the top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::data {

// Someone else's memory.
struct PixelView {
  const std::uint8_t* data = nullptr;
  int channels = 0;
  int height = 0;
  int width = 0;

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  }
  std::size_t bytes() const { return row_bytes() * static_cast<std::size_t>(height); }
};

struct Pixels {
  int channels = 0;
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> values;

  // Makes room, using its memory again.
  void resize(int new_channels, int new_height, int new_width) {
    channels = new_channels;
    height = new_height;
    width = new_width;
    values.resize(view().bytes());
  }
  PixelView view() const { return {values.data(), channels, height, width}; }
};

}  // namespace sluice::data
