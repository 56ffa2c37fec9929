// memory_dataset.h - small images, all of one size, decoded once and kept in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image/normalization.h"

namespace sluice::data {

class MemoryDataset final : public Dataset {
 public:
  explicit MemoryDataset(int classes) : classes_{classes} {}
  // All at once: image after image. REQUIRES: labels.size() images of that size, labels in range.
  MemoryDataset(int classes, int channels, int height, int width, std::vector<std::uint8_t> pixels,
                std::vector<int> labels);

  // The first image says how large all are; one that differs is refused.
  Status add(const Image& image, int label);

  std::size_t size() const override { return labels_.size(); }
  int classes() const override { return classes_; }
  int label(std::size_t sample) const override { return labels_.at(sample); }
  Status decode(std::size_t sample, Image& image) const override;
  Status read(std::size_t sample, std::vector<std::uint8_t>& buffer,
              StoredImage& stored) const override;

  int channels() const { return channels_; }
  int height() const { return height_; }
  int width() const { return width_; }
  // Image after image, plane after plane.
  const std::vector<std::uint8_t>& pixels() const { return pixels_; }
  // Of all pixels of each channel.
  Normalization statistics() const;

 private:
  std::size_t image_size() const;

  int classes_;
  int channels_ = 0;
  int height_ = 0;
  int width_ = 0;
  std::vector<std::uint8_t> pixels_;
  std::vector<int> labels_;
};

}  // namespace sluice::data
