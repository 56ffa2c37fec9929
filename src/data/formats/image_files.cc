#include "data/formats/image_files.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/format.h"
#include "data/formats/file_bytes.h"
#include "data/formats/memory_dataset.h"
#include "data/image/image_decoder.h"

namespace sluice::data {
namespace {

namespace fs = std::filesystem;

// Of ImageNet, in pixels: what published recipes take.
const Normalization kPhotographs{.mean = {0.485 * 255, 0.456 * 255, 0.406 * 255},
                                 .deviation = {0.229 * 255, 0.224 * 255, 0.225 * 255}};

constexpr int kSmallSide = 64;
constexpr std::size_t kProbes = 1000;

// Some images from all over the set, where all of them are small and of one size.
std::optional<MemoryDataset> probe(const Dataset& images, std::size_t memory_bytes) {
  MemoryDataset some{images.classes()};
  Image image;
  const std::size_t probes = std::min(kProbes, images.size());
  for (std::size_t i = 0; i < probes; ++i) {
    const std::size_t sample = i * images.size() / probes;
    if (!images.decode(sample, image).ok()) continue;  // it is named when it is learnt from
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
      base::format("{}: the images to learn from and to validate have different classes: "
                   "{}{}{}",
                   folder.string(), first, first.empty() || second.empty() ? "" : "; ", second)};
}

}  // namespace

Status ImageFiles::read(std::size_t sample, std::vector<std::uint8_t>& buffer,
                        StoredImage& stored) const {
  const Status status = read_bytes(folder_.files.at(sample).path, buffer);
  if (!status.ok()) {
    return {status.code(), base::format("{} {}", name(sample), status.message())};
  }
  stored = {.storage = Storage::File, .bytes = buffer};
  return {};
}

Status ImageFiles::decode(std::size_t sample, Image& image) const {
  thread_local ImageDecoder decoder;
  thread_local std::vector<std::uint8_t> buffer;
  StoredImage stored;
  Status status = read(sample, buffer, stored);
  if (!status.ok()) return status;
  status = decoder.decode(stored.bytes, image);
  if (status.ok()) return status;
  return {status.code(), base::format("{} {}", name(sample), status.message())};
}

KeptImages::KeptImages(std::unique_ptr<Dataset> images, int channels, int height, int width)
    : images_{std::move(images)},
      shape_{channels, height, width, {}},
      pixels_{new std::uint8_t[images_->size() * shape_.size()]},  // NOLINT: left uninitialised
      places_{std::make_unique<std::atomic<Place>[]>(images_->size())} {}

StoredImage KeptImages::kept(std::size_t sample) const {
  return {Storage::Planes,
          shape_.channels,
          shape_.height,
          shape_.width,
          {pixels_.get() + sample * shape_.size(), shape_.size()}};
}

Status KeptImages::decode(std::size_t sample, Image& image) const {
  if (places_[sample].load(std::memory_order_acquire) == Place::Filled) {
    const StoredImage stored = kept(sample);
    image.channels = stored.channels;
    image.height = stored.height;
    image.width = stored.width;
    image.pixels.assign(stored.bytes.begin(), stored.bytes.end());
    return {};
  }
  Status status = images_->decode(sample, image);
  if (!status.ok() || image.channels != shape_.channels || image.height != shape_.height ||
      image.width != shape_.width) {
    return status;
  }
  Place place = Place::Empty;
  if (places_[sample].compare_exchange_strong(place, Place::Written, std::memory_order_relaxed)) {
    std::copy_n(image.pixels.begin(), shape_.size(), pixels_.get() + sample * shape_.size());
    places_[sample].store(Place::Filled, std::memory_order_release);
  }
  return {};
}

Status KeptImages::read(std::size_t sample, std::vector<std::uint8_t>& buffer,
                        StoredImage& stored) const {
  if (places_[sample].load(std::memory_order_acquire) == Place::Filled) {
    stored = kept(sample);
    return {};
  }
  return Dataset::read(sample, buffer, stored);
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
                    base::format("{} has no images {}", folder.string(),
                                 part == &train.value() ? "to learn from" : "to validate")};
    }
  }
  data.channels = 3;
  data.description =
      base::format("{}: {} images to learn from, {} to validate, {} classes", folder.string(),
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
