// image_files.h - images:DIR: photographs, read from their files whenever they are needed.
//
// Small images of one size (CIFAR-10 as JPEG files) are kept decoded once they have been read: then
// an epoch costs what it costs from memory, and start-up still reads a few files only.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/data.h"
#include "data/dataset.h"
#include "data/formats/image_folder.h"

namespace sluice::data {

class ImageFiles final : public Dataset {
 public:
  explicit ImageFiles(ImageFolder folder) : folder_{std::move(folder)} {}

  std::size_t size() const override { return folder_.files.size(); }
  int classes() const override { return static_cast<int>(folder_.classes.size()); }
  int label(std::size_t sample) const override { return folder_.files.at(sample).label; }
  Status decode(std::size_t sample, Image& image) const override;
  Status read(std::size_t sample, std::vector<std::uint8_t>& buffer,
              StoredImage& stored) const override;
  std::string name(std::size_t sample) const override {
    return folder_.files.at(sample).path.string();
  }

 private:
  ImageFolder folder_;
};

// Keeps what it decodes of another set. Images of another size pass through.
class KeptImages final : public Dataset {
 public:
  KeptImages(std::unique_ptr<Dataset> images, int channels, int height, int width);

  std::size_t size() const override { return images_->size(); }
  int classes() const override { return images_->classes(); }
  int label(std::size_t sample) const override { return images_->label(sample); }
  Status decode(std::size_t sample, Image& image) const override;
  Status read(std::size_t sample, std::vector<std::uint8_t>& buffer,
              StoredImage& stored) const override;
  std::string name(std::size_t sample) const override { return images_->name(sample); }

 private:
  enum class Place : std::uint8_t { Empty, Written, Filled };

  StoredImage kept(std::size_t sample) const;

  std::unique_ptr<Dataset> images_;
  Image shape_;
  // Written by the thread that moved its place from Empty to Written, read once it is Filled.
  std::unique_ptr<std::uint8_t[]> pixels_;
  std::unique_ptr<std::atomic<Place>[]> places_;
};

// DIR/train and DIR/val or DIR/test must have the same classes.
Result<Data> open_images(const std::filesystem::path& folder, const DataOptions& options);

}  // namespace sluice::data
