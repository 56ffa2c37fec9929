// image_folder.h - photographs in folders: a folder train/, a folder test/ or val/, and in each a
// folder a class.
//
// Classes are numbered in the order of their names, images in the order of class and name, so that
// every rank that sees the same files numbers them alike.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/formats/memory_dataset.h"
#include "sluice/status.h"

namespace sluice::data {

enum class Split : std::uint8_t { Train, Test };

struct ImageFile {
  std::filesystem::path path;
  int label = 0;
};

struct ImageFolder {
  std::vector<std::string> classes;
  std::vector<ImageFile> files;
};

// What lies in DIR/train, or in DIR/test or DIR/val. Files whose names begin with a dot do not
// count. `most_per_class` 0: all.
Result<ImageFolder> list_images(const std::filesystem::path& folder, Split split,
                                std::size_t most_per_class = 0);

struct LoadedImages {
  MemoryDataset images;
  std::vector<std::string> classes;
  std::vector<std::string> skipped;  // a sentence a file: which, and what is wrong with it
};

// Decodes them all. Broken images are left out; that none is left is an error.
Result<LoadedImages> load_images(const ImageFolder& folder);

}  // namespace sluice::data
