#include <array>
#include <utility>

#include "base/format.h"
#include "data/formats/file_bytes.h"
#include "data/formats/formats.h"

namespace sluice::data {
namespace {

namespace fs = std::filesystem;

constexpr int kSide = 32;
constexpr int kChannels = 3;
constexpr std::size_t kPixels = std::size_t{kChannels} * kSide * kSide;
constexpr std::size_t kRecord = 1 + kPixels;
constexpr std::array kClasses = {"airplane", "automobile", "bird",  "cat",  "deer",
                                 "dog",      "frog",       "horse", "ship", "truck"};

struct Records {
  std::vector<std::uint8_t> pixels;
  std::vector<int> labels;
};

Status append(const fs::path& path, std::size_t records, Records& all) {
  std::vector<std::uint8_t> bytes;
  const Status status = read_bytes(path, bytes);
  if (!status.ok()) {
    return {Code::InvalidInput, base::format("{} {}", path.string(), status.message())};
  }
  if (bytes.size() != records * kRecord) {
    return {Code::InvalidInput,
            base::format("{} {}: {} records of {} bytes are {} bytes, it has {}", path.string(),
                         bytes.size() < records * kRecord ? "is truncated" : "is too long", records,
                         kRecord, records * kRecord, bytes.size())};
  }
  for (std::size_t i = 0; i < records; ++i) {
    const auto record = bytes.begin() + static_cast<std::ptrdiff_t>(i * kRecord);
    if (*record >= kClasses.size()) {
      return {
          Code::InvalidInput,
          base::format("{} is not a batch of CIFAR-10: record {} has the label {}, of {} classes",
                       path.string(), i, *record, kClasses.size())};
    }
    all.labels.push_back(*record);
    all.pixels.insert(all.pixels.end(), record + 1, record + kRecord);
  }
  return {};
}

std::unique_ptr<MemoryDataset> dataset_of(Records& records) {
  return std::make_unique<MemoryDataset>(static_cast<int>(kClasses.size()), kChannels, kSide, kSide,
                                         std::move(records.pixels), std::move(records.labels));
}

}  // namespace

Result<Data> open_cifar10(const fs::path& folder, std::size_t records) {
  std::error_code ignored;
  const fs::path inner = folder / "cifar-10-batches-bin";
  const fs::path root = fs::is_directory(inner, ignored) ? inner : folder;
  Records train;
  for (int i = 1; i <= 5; ++i) {
    Status status = append(root / base::format("data_batch_{}.bin", i), records, train);
    if (!status.ok()) return status;
  }
  Records test;
  Status status = append(root / "test_batch.bin", records, test);
  if (!status.ok()) return status;
  Data data;
  data.classes.assign(kClasses.begin(), kClasses.end());
  data.channels = kChannels;
  data.height = kSide;
  data.width = kSide;
  data.description = base::format("{}: CIFAR-10, {} training images, {} validation images",
                                  root.string(), 5 * records, records);
  auto training = dataset_of(train);
  data.normalization = training->statistics();
  data.train = std::move(training);
  data.validation = dataset_of(test);
  return data;
}

}  // namespace sluice::data
