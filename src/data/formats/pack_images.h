// pack_images.h - a data set as a pack file, its images resized once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "data/data.h"
#include "sluice/status.h"

namespace sluice::data {

struct PackOptions {
  int resize = 0;    // images whose shorter side is longer are brought to it; 0: none are
  bool raw = false;  // pixels instead of JPEG files; grey images always are
  int quality = 90;
  int threads = 1;
  int most_broken = 100;
  // Called now and then, by the caller's thread.
  std::function<void(std::size_t done, std::size_t of)> progress;
};

struct PackSummary {
  std::size_t train = 0;
  std::size_t validation = 0;
  std::size_t classes = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> skipped;  // a sentence a broken image
};

// JPEG files that need no resizing are taken as they are. Broken images are left out; more than
// most_broken are an error, and so is a file that cannot be written. Then `file` is as it was.
Result<PackSummary> pack_images(const Data& data, const std::filesystem::path& file,
                                const PackOptions& options);

}  // namespace sluice::data
