// dataset.h - labelled images, by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sluice/status.h"

namespace sluice::data {

// 8 bits a value, plane after plane, rows from the top.
struct Image {
  int channels = 0;
  int height = 0;
  int width = 0;
  std::vector<std::uint8_t> pixels;

  std::size_t plane() const {
    return static_cast<std::size_t>(height) * static_cast<std::size_t>(width);
  }
  std::size_t size() const { return plane() * static_cast<std::size_t>(channels); }
};

enum class Storage : std::uint8_t {
  Planes,       // as in Image
  Interleaved,  // pixel after pixel, all channels of each
  File,         // the bytes of a JPEG or PNG file: its sizes are not known yet
};

// An image as its set keeps it.
struct StoredImage {
  Storage storage = Storage::Planes;
  int channels = 0;
  int height = 0;
  int width = 0;
  std::span<const std::uint8_t> bytes;
};

inline StoredImage planes_of(const Image& image) {
  return {Storage::Planes, image.channels, image.height, image.width,
          std::span{image.pixels}.first(image.size())};
}

// Thread-safety: const functions from any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::size_t size() const = 0;
  virtual int classes() const = 0;
  virtual int label(std::size_t sample) const = 0;
  // The whole image into `image`, whose memory is used again. What is wrong with it names its file.
  virtual Status decode(std::size_t sample, Image& image) const = 0;

  // As it is kept: in the set's own memory, or in `buffer`. Who needs only a part of it, or a
  // smaller one, spares work by decoding it himself.
  virtual Status read(std::size_t sample, std::vector<std::uint8_t>& buffer,
                      StoredImage& stored) const;
  // What messages call it.
  virtual std::string name(std::size_t sample) const;
};

}  // namespace sluice::data
