#include "data/formats/pack.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <xxhash.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "base/text.h"
#include "data/image/image_decoder.h"

namespace sluice::data {
namespace {

namespace fs = std::filesystem;

static_assert(std::endian::native == std::endian::little, "pack files are little-endian");

Status refuse(const fs::path& file, std::string_view why) {
  return {Code::InvalidInput, base::format("{} {}", file.string(), why)};
}

class Mapping {
 public:
  Mapping(const std::uint8_t* data, std::size_t bytes) : data_{data}, bytes_{bytes} {}
  ~Mapping() { munmap(const_cast<std::uint8_t*>(data_), bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  std::span<const std::uint8_t> bytes() const { return {data_, bytes_}; }

 private:
  const std::uint8_t* data_;
  std::size_t bytes_;
};

struct PackFile {
  fs::path path;
  std::unique_ptr<Mapping> mapping;
  PackHeader header;
  std::vector<PackRecord> records;
  Normalization normalization;
  std::vector<std::string> classes;
  // Whether a record had the right checksum. Threads that check one at the same time agree.
  std::unique_ptr<std::atomic<bool>[]> verified;
};

class PackedImages final : public Dataset {
 public:
  PackedImages(std::shared_ptr<const PackFile> file, std::size_t first, std::size_t count)
      : file_{std::move(file)}, first_{first}, count_{count} {}

  std::size_t size() const override { return count_; }
  int classes() const override { return static_cast<int>(file_->classes.size()); }
  int label(std::size_t sample) const override { return static_cast<int>(record(sample).label); }
  std::string name(std::size_t sample) const override {
    return base::format("{}, record {},", file_->path.string(), first_ + sample);
  }

  Status read(std::size_t sample, std::vector<std::uint8_t>& /*buffer*/,
              ImageView& stored) const override {
    const PackRecord& about = record(sample);
    const auto bytes = file_->mapping->bytes().subspan(about.offset, about.bytes);
    std::atomic<bool>& verified = file_->verified[first_ + sample];
    if (!verified.load(std::memory_order_relaxed)) {
      if (pack_checksum(bytes) != about.checksum) {
        return {Code::InvalidInput, name(sample) + " is damaged: its checksum is wrong"};
      }
      verified.store(true, std::memory_order_relaxed);
    }
    stored = {static_cast<Storage>(file_->header.storage), static_cast<int>(file_->header.channels),
              static_cast<int>(about.height), static_cast<int>(about.width), bytes};
    return {};
  }

  Status decode(std::size_t sample, Image& image) const override {
    thread_local ImageDecoder decoder;
    std::vector<std::uint8_t> unused;
    ImageView stored;
    Status status = read(sample, unused, stored);
    if (!status.ok()) return status;
    if (stored.storage == Storage::File) {
      status = decoder.decode(stored.bytes, image);
      if (status.ok()) return status;
      return {status.code(), base::format("{} {}", name(sample), status.message())};
    }
    copy_as(Storage::Planes, stored, image);
    return {};
  }

 private:
  const PackRecord& record(std::size_t sample) const { return file_->records.at(first_ + sample); }

  std::shared_ptr<const PackFile> file_;
  std::size_t first_;
  std::size_t count_;
};

// Takes values from the front of the index. Once the index is too short, all are zero and ok() is
// false.
class IndexReader {
 public:
  explicit IndexReader(std::span<const std::uint8_t> bytes) : left_{bytes} {}

  bool take(void* into, std::size_t bytes) {
    if (left_.size() < bytes) {
      ok_ = false;
      return false;
    }
    if (bytes > 0) std::memcpy(into, left_.data(), bytes);
    left_ = left_.subspan(bytes);
    return true;
  }
  template <class T>
  T take() {
    T value{};
    take(&value, sizeof value);
    return value;
  }
  std::size_t left() const { return left_.size(); }
  bool ok() const { return ok_; }

 private:
  std::span<const std::uint8_t> left_;
  bool ok_ = true;
};

Status map_file(const fs::path& path, PackFile& file) {
  const base::Fd opened{open(path.c_str(), O_RDONLY | O_CLOEXEC)};
  struct stat about {};
  if (!opened.open() || fstat(opened.number(), &about) != 0) {
    return refuse(path, base::format("cannot be read: {}", std::strerror(errno)));
  }
  const auto bytes = static_cast<std::size_t>(about.st_size);
  if (!S_ISREG(about.st_mode)) return refuse(path, "is not a file");
  if (bytes < sizeof(PackHeader)) return refuse(path, "is not a pack file: it is too short");
  void* const data = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, opened.number(), 0);
  if (data == MAP_FAILED) {
    return refuse(path, base::format("cannot be mapped: {}", std::strerror(errno)));
  }
  file.mapping = std::make_unique<Mapping>(static_cast<const std::uint8_t*>(data), bytes);
  return {};
}

Status check_header(const fs::path& path, const PackHeader& header, std::size_t bytes) {
  if (std::memcmp(header.magic, kPackMagic, sizeof header.magic) != 0) {
    return refuse(path, base::format("is not a pack file: it begins with {}, not {}",
                                     base::quote({header.magic, sizeof header.magic}), kPackMagic));
  }
  if (header.version != kPackVersion) {
    return refuse(path, base::format("is a pack file of version {}, this Sluice reads version {}",
                                     header.version, kPackVersion));
  }
  const std::uint64_t expected = header.index_offset + header.index_bytes;
  if (header.index_offset < sizeof header || expected < header.index_offset || bytes != expected) {
    return refuse(path, base::format("is {}: its header says {} bytes, it has {}",
                                     bytes < expected ? "truncated" : "not a valid pack file",
                                     expected, bytes));
  }
  return {};
}

// A checksum does not say whether the index makes sense.
Status check_records(const PackFile& file) {
  const bool pixels = file.header.storage == static_cast<std::uint32_t>(Storage::Interleaved);
  for (std::size_t i = 0; i < file.records.size(); ++i) {
    const PackRecord& record = file.records[i];
    const bool inside = record.offset >= sizeof(PackHeader) &&
                        record.offset <= file.header.index_offset &&
                        record.bytes <= file.header.index_offset - record.offset;
    const std::uint64_t size = std::uint64_t{record.height} * record.width * file.header.channels;
    if (!inside || record.label >= file.classes.size() || (pixels && size != record.bytes)) {
      return refuse(file.path, base::format("has a wrong index: record {} is impossible", i));
    }
  }
  return {};
}

Status read_index(PackFile& file) {
  const auto all = file.mapping->bytes();
  const auto index = all.subspan(file.header.index_offset);
  if (pack_checksum(file.header, index) != file.header.checksum) {
    return refuse(file.path, "is damaged: the checksum of its index is wrong");
  }
  IndexReader reader{index};
  const std::uint64_t count = file.header.train + file.header.validation;
  Status wrong = refuse(file.path, "has a wrong index: it is too short for its content");
  if (count < file.header.train || count > reader.left() / sizeof(PackRecord)) return wrong;
  file.records.resize(count);
  file.verified = std::make_unique<std::atomic<bool>[]>(count);
  reader.take(file.records.data(), count * sizeof(PackRecord));
  if (file.header.channels == 0 || file.header.channels > 4) return wrong;
  if (file.header.storage != static_cast<std::uint32_t>(Storage::File) &&
      file.header.storage != static_cast<std::uint32_t>(Storage::Interleaved)) {
    return refuse(file.path, "has a wrong header: it holds neither pixels nor JPEG files");
  }
  for (std::uint32_t channel = 0; channel < file.header.channels; ++channel) {
    file.normalization.mean.push_back(reader.take<double>());
    file.normalization.deviation.push_back(reader.take<double>());
  }
  const auto classes = reader.take<std::uint32_t>();
  for (std::uint32_t i = 0; i < classes && reader.ok(); ++i) {
    const auto length = reader.take<std::uint32_t>();
    if (length > reader.left()) return wrong;
    std::string name(length, '\0');
    reader.take(name.data(), length);
    file.classes.push_back(std::move(name));
  }
  if (!reader.ok() || reader.left() != 0) return wrong;
  return check_records(file);
}

}  // namespace

std::uint64_t pack_checksum(std::span<const std::uint8_t> bytes) {
  return XXH64(bytes.data(), bytes.size(), 0);
}

std::uint64_t pack_checksum(const PackHeader& header, std::span<const std::uint8_t> index) {
  return XXH64(index.data(), index.size(), XXH64(&header, offsetof(PackHeader, checksum), 0));
}

Result<Data> open_pack(const fs::path& path) {
  auto file = std::make_shared<PackFile>();
  file->path = path;
  Status status = map_file(path, *file);
  if (!status.ok()) return status;
  std::memcpy(&file->header, file->mapping->bytes().data(), sizeof(PackHeader));
  status = check_header(path, file->header, file->mapping->bytes().size());
  if (status.ok()) status = read_index(*file);
  if (!status.ok()) return status;
  if (file->header.train == 0 || file->header.validation == 0) {
    return refuse(path, base::format("has no {} images",
                                     file->header.train == 0 ? "training" : "validation"));
  }
  Data data;
  data.classes = file->classes;
  data.normalization = file->normalization;
  data.channels = static_cast<int>(file->header.channels);
  const PackRecord& first = file->records.front();
  const bool alike =
      std::all_of(file->records.begin(), file->records.end(), [&first](const PackRecord& record) {
        return record.height == first.height && record.width == first.width;
      });
  if (alike) {
    data.height = static_cast<int>(first.height);
    data.width = static_cast<int>(first.width);
  }
  data.description = base::format(
      "{}: {} training images, {} validation images, {} classes, {}", path.string(),
      file->header.train, file->header.validation, data.classes.size(),
      file->header.storage == static_cast<std::uint32_t>(Storage::File) ? "JPEG" : "pixels");
  data.train = std::make_unique<PackedImages>(file, 0, file->header.train);
  data.validation =
      std::make_unique<PackedImages>(file, file->header.train, file->header.validation);
  return data;
}

}  // namespace sluice::data
