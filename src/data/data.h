// data.h - the data of a training, by the word that a user gives: demo, mnist:DIR, cifar10:DIR,
// images:DIR, pack:FILE, or random:SIDE to measure with.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "data/image/normalization.h"
#include "sluice/status.h"

namespace sluice::data {

struct Data {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation;
  std::vector<std::string> classes;
  Normalization normalization;  // one value a channel
  int channels = 0;
  int height = 0;  // 0 where images differ in size
  int width = 0;
  std::string description;  // a line for people
};

struct DataOptions {
  std::size_t most_per_class = 0;  // training images, the first by name; 0: all; images: alone
  // images: alone: small images of one size are kept decoded up to this.
  std::size_t memory_bytes = std::size_t{512} << 20U;
};

// Reads what is small into memory; large sets are only looked at. A wrong word, a missing folder, a
// truncated or foreign file is a sentence that says where. Every rank that sees the same files
// numbers samples and classes alike.
Result<Data> open_data(std::string_view spec, const DataOptions& options = {});

}  // namespace sluice::data
