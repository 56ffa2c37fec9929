#include "data/formats/image_folder.h"

#include <algorithm>
#include <optional>
#include <system_error>

#include "base/format.h"
#include "data/formats/file_bytes.h"
#include "data/image/image_decoder.h"

namespace sluice::data {
namespace {

namespace fs = std::filesystem;

// Names in a folder in order, without hidden ones.
Result<std::vector<fs::path>> entries(const fs::path& folder) {
  std::error_code error;
  std::vector<fs::path> paths;
  fs::directory_iterator entry{folder, error};
  for (; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
    if (!entry->path().filename().string().starts_with('.')) paths.push_back(entry->path());
  }
  if (error) {
    return Status{Code::InvalidInput,
                  base::format("{} cannot be read: {}", folder.string(), error.message())};
  }
  // As text: comparing paths takes them apart, which shows with 50,000 of them.
  std::sort(paths.begin(), paths.end(),
            [](const fs::path& a, const fs::path& b) { return a.native() < b.native(); });
  return paths;
}

std::optional<fs::path> split_folder(const fs::path& folder, Split split) {
  if (split == Split::Train) {
    return fs::is_directory(folder / "train") ? std::optional{folder / "train"} : std::nullopt;
  }
  for (const char* const name : {"test", "val"}) {
    if (fs::is_directory(folder / name)) return folder / name;
  }
  return std::nullopt;
}

}  // namespace

Result<ImageFolder> list_images(const fs::path& folder, Split split, std::size_t most_per_class) {
  const std::optional<fs::path> root = split_folder(folder, split);
  if (!root) {
    return Status{Code::InvalidInput,
                  base::format("{} has no folder {} with a folder of images for each class",
                               folder.string(), split == Split::Train ? "train" : "test or val")};
  }
  const Result<std::vector<fs::path>> classes = entries(*root);
  if (!classes.ok()) return classes.status();
  ImageFolder found;
  for (const fs::path& path : classes.value()) {
    if (!fs::is_directory(path)) continue;
    Result<std::vector<fs::path>> files = entries(path);
    if (!files.ok()) return files.status();
    const std::size_t count =
        most_per_class == 0 ? files.value().size() : std::min(most_per_class, files.value().size());
    const int label = static_cast<int>(found.classes.size());
    for (std::size_t i = 0; i < count; ++i) {
      found.files.push_back({std::move(files.value()[i]), label});
    }
    found.classes.push_back(path.filename().string());
  }
  return found;
}

Result<LoadedImages> load_images(const ImageFolder& folder) {
  LoadedImages loaded{MemoryDataset{static_cast<int>(folder.classes.size())}, folder.classes, {}};
  ImageDecoder decoder;
  std::vector<std::uint8_t> bytes;
  Image image;
  for (const ImageFile& file : folder.files) {
    Status status = read_bytes(file.path, bytes);
    if (status.ok()) status = decoder.decode(bytes, image);
    if (!status.ok()) {
      loaded.skipped.push_back(base::format("{} {}", file.path.string(), status.message()));
      continue;
    }
    const Status added = loaded.images.add(image, file.label);
    if (!added.ok()) {
      return Status{added.code(), base::format("{} {}", file.path.string(), added.message())};
    }
  }
  if (loaded.images.size() == 0) {
    return Status{Code::InvalidInput,
                  loaded.skipped.empty()
                      ? std::string{"there are no images in the folders of the classes"}
                      : base::format("none of {} images can be used: {}", loaded.skipped.size(),
                                     loaded.skipped.front())};
  }
  return loaded;
}

}  // namespace sluice::data
