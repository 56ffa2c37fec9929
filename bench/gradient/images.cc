#include "bench/gradient/images.h"

#include <cstdlib>
#include <filesystem>
#include <optional>

#include "base/format.h"
#include "bench/allreduce/temporary_folder.h"
#include "data/formats/image_folder.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse(const std::string& why) { throw Error{Status{Code::InvalidInput, why}}; }

fs::path find_archive() {
  const char* const data = std::getenv("SLUICE_TEST_DATA");
  if (data == nullptr)
    refuse(
        "there are no images: --data names a folder with train/ and test/, or SLUICE_TEST_DATA one "
        "with cifar10-jpeg.tar.xz");
  const fs::path archive = fs::path{data} / "cifar10-jpeg.tar.xz";
  if (!fs::exists(archive)) refuse(base::format("{} is not there", archive.string()));
  return archive;
}

data::MemoryDataset load_split(const fs::path& folder, data::Split split,
                               std::size_t most_per_class) {
  data::LoadedImages loaded =
      data::load_images(data::list_images(folder, split, most_per_class).value()).value();
  if (!loaded.skipped.empty()) refuse(loaded.skipped.front());
  return std::move(loaded.images);
}

}  // namespace

Images load(const std::string& folder, std::size_t train) {
  fs::path root = folder;
  std::optional<TemporaryFolder> unpacked;
  if (folder.empty()) {
    const fs::path archive = find_archive();
    root = unpacked.emplace().make("images");
    const std::string unpack =
        base::format("tar -xJf '{}' -C '{}'", archive.string(), root.string());
    if (std::system(unpack.c_str()) != 0)
      refuse(base::format("{} cannot be unpacked into {}", archive.string(), root.string()));
  }
  const std::size_t classes = data::list_images(root, data::Split::Train, 1).value().classes.size();
  if (classes == 0 || train < classes)
    refuse(base::format("{} has {} classes for {} images", root.string(), classes, train));
  Images images{load_split(root, data::Split::Train, train / classes),
                load_split(root, data::Split::Test, 0),
                {}};
  if (images.train.size() != train / classes * classes)
    refuse(base::format("{} has only {} images of those {}", root.string(), images.train.size(),
                        train));
  images.normalization = images.train.statistics();
  return images;
}

}  // namespace sluice::bench
