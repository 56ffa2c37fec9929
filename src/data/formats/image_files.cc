#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "data/formats/file_bytes.h"
#include "data/formats/formats.h"
#include "data/image/image_decoder.h"

namespace sluice::data {
namespace {

namespace fs = std::filesystem;

// The statistics of ImageNet, which published recipes use.
const Normalization kPhotographs{.mean = {0.485 * 255, 0.456 * 255, 0.406 * 255},
                                 .deviation = {0.229 * 255, 0.224 * 255, 0.225 * 255}};

constexpr int kSmallSide = 64;
constexpr std::size_t kProbes = 1000;

// The paths in a folder, sorted, without hidden files.
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
  // Compared as text: comparing paths splits them, which is slow for 50,000 paths.
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

class ImageFiles final : public Dataset {
 public:
  explicit ImageFiles(ImageFolder folder) : folder_{std::move(folder)} {}

  std::size_t size() const override { return folder_.files.size(); }
  int classes() const override { return static_cast<int>(folder_.classes.size()); }
  int label(std::size_t sample) const override { return folder_.files.at(sample).label; }
  Status decode(std::size_t sample, Image& image) const override {
    thread_local ImageDecoder decoder;
    thread_local std::vector<std::uint8_t> buffer;
    ImageView stored;
    Status status = read(sample, buffer, stored);
    if (!status.ok()) return status;
    status = decoder.decode(stored.bytes, image);
    if (status.ok()) return status;
    return {status.code(), base::format("{} {}", name(sample), status.message())};
  }
  Status read(std::size_t sample, std::vector<std::uint8_t>& buffer,
              ImageView& stored) const override {
    const Status status = read_bytes(folder_.files.at(sample).path, buffer);
    if (!status.ok()) {
      return {status.code(), base::format("{} {}", name(sample), status.message())};
    }
    stored = {.storage = Storage::File, .bytes = buffer};
    return {};
  }
  std::string name(std::size_t sample) const override {
    return folder_.files.at(sample).path.string();
  }

 private:
  ImageFolder folder_;
};

// Decodes the images of another data set once and keeps them. Images of another size are decoded
// every time.
class KeptImages final : public Dataset {
 public:
  KeptImages(std::unique_ptr<Dataset> images, int channels, int height, int width)
      : images_{std::move(images)},
        shape_{channels, height, width, {}},
        pixels_{new std::uint8_t[images_->size() * shape_.size()]},  // NOLINT: left uninitialised
        slots_{std::make_unique<std::atomic<Slot>[]>(images_->size())} {}

  std::size_t size() const override { return images_->size(); }
  int classes() const override { return images_->classes(); }
  int label(std::size_t sample) const override { return images_->label(sample); }
  Status decode(std::size_t sample, Image& image) const override {
    if (slots_[sample].load(std::memory_order_acquire) == Slot::Filled) {
      copy_as(Storage::Planes, kept(sample), image);
      return {};
    }
    Status status = images_->decode(sample, image);
    if (!status.ok() || image.channels != shape_.channels || image.height != shape_.height ||
        image.width != shape_.width) {
      return status;
    }
    Slot slot = Slot::Empty;
    if (slots_[sample].compare_exchange_strong(slot, Slot::Claimed, std::memory_order_relaxed)) {
      std::copy_n(image.pixels.begin(), shape_.size(), pixels_.get() + sample * shape_.size());
      slots_[sample].store(Slot::Filled, std::memory_order_release);
    }
    return {};
  }
  Status read(std::size_t sample, std::vector<std::uint8_t>& buffer,
              ImageView& stored) const override {
    if (slots_[sample].load(std::memory_order_acquire) == Slot::Filled) {
      stored = kept(sample);
      return {};
    }
    return Dataset::read(sample, buffer, stored);
  }
  std::string name(std::size_t sample) const override { return images_->name(sample); }

 private:
  enum class Slot : std::uint8_t { Empty, Claimed, Filled };

  ImageView kept(std::size_t sample) const {
    return {Storage::Planes,
            shape_.channels,
            shape_.height,
            shape_.width,
            {pixels_.get() + sample * shape_.size(), shape_.size()}};
  }

  std::unique_ptr<Dataset> images_;
  Image shape_;  // without pixels
  // A slot is written by the thread that moved it from Empty to Claimed, and read once it is
  // Filled.
  std::unique_ptr<std::uint8_t[]> pixels_;
  std::unique_ptr<std::atomic<Slot>[]> slots_;
};

// Decodes a few images from all over the set. Returns them if they are small and of one size, and
// if the whole set fits into `memory_bytes`.
std::optional<MemoryDataset> probe(const Dataset& images, std::size_t memory_bytes) {
  MemoryDataset some{images.classes()};
  Image image;
  const std::size_t probes = std::min(kProbes, images.size());
  for (std::size_t i = 0; i < probes; ++i) {
    const std::size_t sample = i * images.size() / probes;
    if (!images.decode(sample, image).ok()) continue;  // training reports it
    if (std::max(image.height, image.width) > kSmallSide) return std::nullopt;
    if (!some.add(image, images.label(sample)).ok()) return std::nullopt;
    if (image.size() * images.size() > memory_bytes) return std::nullopt;
  }
  if (some.size() == 0) return std::nullopt;
  return some;
}

std::string list(const std::vector<std::string>& names) {
  constexpr std::size_t kShown = 3;
  const std::vector<std::string> shown{names.begin(),
                                       names.begin() + std::min(names.size(), kShown)};
  return base::format("{}{}", base::join(shown, ", "), names.size() > kShown ? ", ..." : "");
}

Status different_classes(const fs::path& folder, const std::vector<std::string>& train,
                         const std::vector<std::string>& other) {
  const auto without = [](const std::vector<std::string>& all,
                          const std::vector<std::string>& some) {
    std::vector<std::string> rest;
    std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(rest));
    return rest;
  };
  const auto only_train = without(train, other);
  const auto only_other = without(other, train);
  const std::string first =
      only_train.empty() ? "" : base::format("only train has {}", list(only_train));
  const std::string second =
      only_other.empty() ? "" : base::format("only the other has {}", list(only_other));
  return {
      Code::InvalidInput,
      base::format("{}: training and validation images have different classes: {}{}{}",
                   folder.string(), first, first.empty() || second.empty() ? "" : "; ", second)};
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

Result<Data> open_images(const fs::path& folder, const DataOptions& options) {
  Result<ImageFolder> train = list_images(folder, Split::Train, options.most_per_class);
  if (!train.ok()) return train.status();
  Result<ImageFolder> test = list_images(folder, Split::Test);
  if (!test.ok()) return test.status();
  Data data;
  data.classes = train.value().classes;
  if (data.classes != test.value().classes) {
    return different_classes(folder, data.classes, test.value().classes);
  }
  for (const ImageFolder* part : {&train.value(), &test.value()}) {
    if (part->files.empty()) {
      return Status{Code::InvalidInput,
                    base::format("{} has no {} images", folder.string(),
                                 part == &train.value() ? "training" : "validation")};
    }
  }
  data.channels = 3;
  data.description =
      base::format("{}: {} training images, {} validation images, {} classes", folder.string(),
                   train.value().files.size(), test.value().files.size(), data.classes.size());
  data.train = std::make_unique<ImageFiles>(std::move(train).value());
  data.validation = std::make_unique<ImageFiles>(std::move(test).value());
  const std::optional<MemoryDataset> some = probe(*data.train, options.memory_bytes);
  if (!some) {
    data.normalization = kPhotographs;
    return data;
  }
  data.normalization = some->statistics();
  data.height = some->height();
  data.width = some->width();
  for (std::unique_ptr<Dataset>* part : {&data.train, &data.validation}) {
    *part = std::make_unique<KeptImages>(std::move(*part), some->channels(), some->height(),
                                         some->width());
  }
  return data;
}

}  // namespace sluice::data
