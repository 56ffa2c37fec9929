// image.h - an image in memory, and the statistics that normalise it.
//
// A value of a pixel has 8 bits; rows begin at the top.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::data {

enum class Storage : std::uint8_t {
  Planes,       // one channel after the other
  Interleaved,  // one pixel after the other, with all its channels
  File,         // the bytes of a JPEG or PNG file; its size is not known yet
};

// An image in memory that somebody else owns.
struct ImageView {
  Storage storage = Storage::Planes;
  int channels = 0;
  int height = 0;
  int width = 0;
  std::span<const std::uint8_t> bytes;

  std::size_t row_bytes() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(channels);
  }
};

struct Image {
  int channels = 0;
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;
  Storage storage = Storage::Planes;

  std::size_t plane() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  }
  std::size_t size() const { return plane() * static_cast<std::size_t>(channels); }
  ImageView view() const {
    return {storage, channels, height, width, std::span{pixels}.first(size())};
  }
  // Makes room for an image of that size. Reuses the memory.
  void resize(Storage new_storage, int new_channels, int new_height, int new_width);
};

// Copies an image and changes its storage. REQUIRES: the image is Planes or Interleaved.
void copy_as(Storage storage, const ImageView& from, Image& to);

// Mean and standard deviation of each channel, in units of pixel values (0 to 255).
struct Normalization {
  std::vector<double> mean;
  std::vector<double> deviation;  // greater than 0
};

// Sums over the pixels of many images. They are whole numbers, so the order of images does not
// change the result.
class PixelSums {
 public:
  void add(const ImageView& image);
  void add(const PixelSums& other);
  Normalization statistics(int channels) const;

 private:
  std::array<std::uint64_t, 4> sum_{};
  std::array<std::uint64_t, 4> squares_{};
  std::uint64_t pixels_ = 0;
};

}  // namespace sluice::data
