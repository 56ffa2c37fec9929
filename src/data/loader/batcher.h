// batcher.h - samples as the memory of a batch: decoded, augmented, normalised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image/augment.h"
#include "data/image/normalization.h"
#include "sluice/status.h"

namespace sluice::data {

// Its memory is used again by the next fill().
struct Batch {
  std::size_t count = 0;  // samples
  int channels = 0;
  int height = 0;
  int width = 0;
  std::vector<float> images;  // count x channels x height x width
  std::vector<std::int64_t> labels;

  std::size_t image_size() const {
    return static_cast<std::size_t>(channels) * static_cast<std::size_t>(height) *
           static_cast<std::size_t>(width);
  }
};

struct BatcherOptions {
  Normalization normalization;
  std::optional<Augmentation> augmentation;  // none: images as they are
  std::uint64_t seed = 0;
};

// Thread-safety: one thread at a time.
class Batcher {
 public:
  // `dataset` must outlive it.
  Batcher(const Dataset& dataset, BatcherOptions options);

  // Broken images are left out, so the batch may be shorter. That none is left, or that images
  // differ in size, is an error.
  Status fill(std::uint64_t epoch, std::span<const std::size_t> samples, Batch& batch);

  // Images that were left out so far, a sentence each.
  const std::vector<std::string>& skipped() const { return skipped_; }

 private:
  const Dataset* dataset_;
  BatcherOptions options_;
  Image image_;
  std::vector<std::string> skipped_;
};

}  // namespace sluice::data
