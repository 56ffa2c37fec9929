// dataset.h - labelled images, by number: the interface, and the one that keeps them in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "data/image/image.h"
#include "sluice/status.h"

namespace sluice::data {

// A sample of one epoch. The epoch selects its augmentation.
struct SampleRef {
  std::uint64_t epoch = 0;
  std::size_t sample = 0;
  bool operator==(const SampleRef&) const = default;
};

// Thread-safety: const functions from any thread.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual std::size_t size() const = 0;
  virtual int classes() const = 0;
  virtual int label(std::size_t sample) const = 0;
  // Decodes the whole image into planes. Reuses the memory of `image`. An error names the file.
  virtual Status decode(std::size_t sample, Image& image) const = 0;

  // The image as it is stored: in the memory of the data set, or in `buffer`. A caller that needs
  // only a part of the image, or a smaller one, saves work when it decodes the bytes itself.
  virtual Status read(std::size_t sample, std::vector<std::uint8_t>& buffer,
                      ImageView& stored) const;
  // The name of the sample in messages.
  virtual std::string name(std::size_t sample) const;
};

// Small images of one size, decoded once and kept in memory.
class MemoryDataset final : public Dataset {
 public:
  explicit MemoryDataset(int classes) : classes_{classes} {}
  // Takes all images at once. REQUIRES: `pixels` holds labels.size() images of that size, as
  // planes; labels are in range.
  MemoryDataset(int classes, int channels, int height, int width, std::vector<std::uint8_t> pixels,
                std::vector<int> labels);

  // The first image sets the size of all; an image of another size is an error.
  // REQUIRES: the image is stored as planes.
  Status add(const Image& image, int label);

  std::size_t size() const override { return labels_.size(); }
  int classes() const override { return classes_; }
  int label(std::size_t sample) const override { return labels_.at(sample); }
  Status decode(std::size_t sample, Image& image) const override;
  Status read(std::size_t sample, std::vector<std::uint8_t>& buffer,
              ImageView& stored) const override;

  int channels() const { return channels_; }
  int height() const { return height_; }
  int width() const { return width_; }
  // One image after the other, as planes.
  const std::vector<std::uint8_t>& pixels() const { return pixels_; }
  // Over the pixels of all images.
  Normalization statistics() const;

 private:
  ImageView stored(std::size_t sample) const;
  std::size_t image_size() const;

  int classes_;
  int channels_ = 0;
  int height_ = 0;
  int width_ = 0;
  std::vector<std::uint8_t> pixels_;
  std::vector<int> labels_;
};

}  // namespace sluice::data
