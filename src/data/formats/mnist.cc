// mnist.cc - reads IDX files.
//
// An IDX file has a magic number (0x0801: one size follows, 0x0803: three sizes), then the sizes,
// as big-endian 32-bit numbers, then the bytes.

#include <algorithm>
#include <utility>

#include "base/format.h"
#include "data/formats/file_bytes.h"
#include "data/formats/formats.h"

namespace sluice::data {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kLargestSide = 4096;

Status refuse(const fs::path& path, std::string_view why) {
  return {Code::InvalidInput, base::format("{} {}", path.string(), why)};
}

struct Idx {
  fs::path path;
  std::vector<std::uint64_t> sizes;
  std::vector<std::uint8_t> values;
};

Result<fs::path> find_idx(const fs::path& folder, std::string_view what, int sizes) {
  for (const char* const dash : {"-", "."}) {
    for (const char* const end : {"", ".gz"}) {
      fs::path path = folder / base::format("{}{}idx{}-ubyte{}", what, dash, sizes, end);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path;
    }
  }
  return refuse(folder, base::format("has no file {}-idx{}-ubyte or {}-idx{}-ubyte.gz", what, sizes,
                                     what, sizes));
}

std::uint64_t big_endian(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = at; i < at + 4; ++i) value = value << 8U | bytes[i];
  return value;
}

Result<Idx> read_idx(const fs::path& folder, std::string_view what, int dimensions) {
  const Result<fs::path> path = find_idx(folder, what, dimensions);
  if (!path.ok()) return path.status();
  Idx idx{path.value(), {}, {}};
  const Status status = read_maybe_gzipped(idx.path, idx.values);
  if (!status.ok()) return refuse(idx.path, status.message());
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(dimensions);
  if (idx.values.size() < header) {
    return refuse(idx.path, base::format("is {} bytes long, and an IDX header alone is {}",
                                         idx.values.size(), header));
  }
  const std::uint64_t magic = 0x0800 + static_cast<std::uint64_t>(dimensions);
  if (big_endian(idx.values, 0) != magic) {
    return refuse(
        idx.path,
        base::format("is not an IDX file of {}: it begins with {:08x}, not {:08x}",
                     dimensions == 1 ? "labels" : "images", big_endian(idx.values, 0), magic));
  }
  std::uint64_t bytes = 1;
  for (int i = 0; i < dimensions; ++i) {
    idx.sizes.push_back(big_endian(idx.values, 4 + 4 * static_cast<std::size_t>(i)));
    if (idx.sizes.back() == 0 || (i > 0 && idx.sizes.back() > kLargestSide)) {
      return refuse(idx.path,
                    base::format("has a wrong size in its header: {} of {}", idx.sizes.back(),
                                 i == 0 ? "samples" : "pixels per side"));
    }
    bytes *= idx.sizes.back();
  }
  if (idx.values.size() != header + bytes) {
    return refuse(idx.path,
                  base::format("{}: its header says {} bytes, it has {}",
                               idx.values.size() < header + bytes ? "is truncated" : "is too long",
                               header + bytes, idx.values.size()));
  }
  idx.values.erase(idx.values.begin(), idx.values.begin() + static_cast<std::ptrdiff_t>(header));
  return idx;
}

struct Part {
  Idx images;
  Idx labels;
};

Result<Part> read_part(const fs::path& folder, const std::string& name) {
  Result<Idx> images = read_idx(folder, name + "-images", 3);
  if (!images.ok()) return images.status();
  Result<Idx> labels = read_idx(folder, name + "-labels", 1);
  if (!labels.ok()) return labels.status();
  if (images.value().sizes[0] != labels.value().sizes[0]) {
    return refuse(labels.value().path,
                  base::format("has {} labels for the {} images of {}", labels.value().sizes[0],
                               images.value().sizes[0], images.value().path.string()));
  }
  return Part{std::move(images).value(), std::move(labels).value()};
}

std::unique_ptr<MemoryDataset> dataset_of(Part& part, int classes) {
  const std::vector<std::uint8_t>& labels = part.labels.values;
  return std::make_unique<MemoryDataset>(
      classes, 1, static_cast<int>(part.images.sizes[1]), static_cast<int>(part.images.sizes[2]),
      std::move(part.images.values), std::vector<int>{labels.begin(), labels.end()});
}

}  // namespace

Result<Data> open_mnist(const fs::path& folder) {
  Result<Part> train = read_part(folder, "train");
  if (!train.ok()) return train.status();
  Result<Part> test = read_part(folder, "t10k");
  if (!test.ok()) return test.status();
  const Idx& images = train.value().images;
  if (!std::equal(images.sizes.begin() + 1, images.sizes.end(),
                  test.value().images.sizes.begin() + 1)) {
    return refuse(test.value().images.path,
                  base::format("has images of {}x{} pixels where {} has {}x{}",
                               test.value().images.sizes[2], test.value().images.sizes[1],
                               images.path.string(), images.sizes[2], images.sizes[1]));
  }
  const auto largest = [](const Idx& labels) {
    return *std::max_element(labels.values.begin(), labels.values.end());
  };
  const int classes = std::max<int>(10, largest(train.value().labels) + 1);
  if (largest(test.value().labels) >= classes) {
    return refuse(
        test.value().labels.path,
        base::format("has a label {}, which no training image has", largest(test.value().labels)));
  }
  Data data;
  data.channels = 1;
  data.height = static_cast<int>(images.sizes[1]);
  data.width = static_cast<int>(images.sizes[2]);
  data.description =
      base::format("{}: {} training images, {} validation images, {} classes", folder.string(),
                   images.sizes[0], test.value().images.sizes[0], classes);
  auto training = dataset_of(train.value(), classes);
  data.normalization = training->statistics();
  data.train = std::move(training);
  data.validation = dataset_of(test.value(), classes);
  for (int label = 0; label < classes; ++label) data.classes.push_back(std::to_string(label));
  return data;
}

}  // namespace sluice::data
