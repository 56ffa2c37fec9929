// dataset.h - labelled images, by number.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sluice/status.h"

namespace sluice {

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

// Thread-safety: const functions from any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::size_t size() const = 0;
  virtual int classes() const = 0;
  virtual int label(std::size_t sample) const = 0;
  // Into `image`, whose memory is used again. What is wrong with an image names its file.
  virtual Status decode(std::size_t sample, Image& image) const = 0;
};

}  // namespace sluice
