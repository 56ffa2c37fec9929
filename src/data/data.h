// data.h - the data of a training, by the name that a user gives: demo, mnist:DIR, cifar10:DIR,
// images:DIR, pack:FILE, or random:SIDE for measurements.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "data/dataset.h"
#include "sluice/status.h"

namespace sluice::data {

struct Data {
  std::unique_ptr<Dataset> train;
  std::unique_ptr<Dataset> validation;
  std::vector<std::string> classes;
  Normalization normalization;
  int channels = 0;
  int height = 0;  // 0 where images differ in size
  int width = 0;
  std::string description;  // a line for the user
};

struct DataOptions {
  // Both apply only to images:DIR.
  std::size_t most_per_class = 0;  // training images, the first by name; 0: all
  // Small images of one size are kept decoded if all of them fit into this.
  std::size_t memory_bytes = std::size_t{512} << 20U;
};

// Reads small data sets into memory and lists the files of large ones. A wrong name, a missing
// folder, and a truncated or foreign file are errors that name it. Every rank that sees the same
// files numbers samples and classes in the same way.
Result<Data> open_data(std::string_view spec, const DataOptions& options = {});

}  // namespace sluice::data
