// images.h - the images that accuracy is measured on.
#pragma once

#include <cstddef>
#include <string>

#include "data/formats/memory_dataset.h"
#include "data/image/normalization.h"

namespace sluice::bench {

struct Images {
  data::MemoryDataset train;
  data::MemoryDataset test;
  data::Normalization normalization;  // of the training images
};

// The first `train` of DIR/train, as many of every class, and all of DIR/test. Without a folder:
// those of $SLUICE_TEST_DATA/cifar10-jpeg.tar.xz. Throws Error.
Images load(const std::string& folder, std::size_t train);

}  // namespace sluice::bench
