// pack_writer.cc - writes a data set to a pack file, resizing its images once.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <thread>
#include <utility>

#include "base/file.h"
#include "base/format.h"
#include "data/formats/pack.h"
#include "data/image/image_decoder.h"
#include "data/image/resizer.h"

namespace sluice::data {
namespace {

// Images that are packed in parallel and then written in order.
constexpr std::size_t kBlock = 256;

// Writes FILE.part; finish() renames it. The next attempt overwrites the FILE.part of an attempt
// that died. Training records come first.
class PackWriter {
 public:
  static Result<PackWriter> open(std::filesystem::path file);
  // Removes FILE.part unless finish() succeeded.
  ~PackWriter();
  PackWriter(PackWriter&&) noexcept = default;
  PackWriter& operator=(PackWriter&&) = delete;

  Status add(std::span<const std::uint8_t> bytes, int label, int height, int width);
  // The caller sets storage, channels, resized, train and validation of `header`.
  Status finish(PackHeader header, const Normalization& normalization,
                const std::vector<std::string>& classes);

  // The size of the finished file.
  std::uint64_t bytes() const { return offset_; }

 private:
  struct CloseFile {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  explicit PackWriter(std::filesystem::path file) : path_{std::move(file)} {}
  Status write(const void* bytes, std::size_t count);
  Status refuse() const;
  std::filesystem::path part() const { return path_.string() + ".part"; }

  std::filesystem::path path_;
  std::unique_ptr<std::FILE, CloseFile> file_;
  std::uint64_t offset_ = 0;
  std::vector<PackRecord> records_;
};

void append(std::vector<std::uint8_t>& index, const void* bytes, std::size_t count) {
  const auto* const from = static_cast<const std::uint8_t*>(bytes);
  index.insert(index.end(), from, from + count);
}

// A full disk is an error of the machine, not of the input.
Status PackWriter::refuse() const {
  const int error = errno;
  const bool full = error == ENOSPC || error == EDQUOT || error == EIO;
  return {full ? Code::NoMemory : Code::InvalidInput,
          base::format("{} cannot be written: {}", part().string(), std::strerror(error))};
}

Result<PackWriter> PackWriter::open(std::filesystem::path file) {
  PackWriter writer{std::move(file)};
  writer.file_.reset(std::fopen(writer.part().c_str(), "wb"));
  if (writer.file_ == nullptr) return writer.refuse();
  const Status status =
      writer.write(std::vector<char>(sizeof(PackHeader)).data(), sizeof(PackHeader));
  if (!status.ok()) return status;
  return writer;
}

PackWriter::~PackWriter() {
  if (file_ != nullptr) unlink(part().c_str());
}

Status PackWriter::write(const void* bytes, std::size_t count) {
  if (std::fwrite(bytes, 1, count, file_.get()) != count) return refuse();
  offset_ += count;
  return {};
}

Status PackWriter::add(std::span<const std::uint8_t> bytes, int label, int height, int width) {
  records_.push_back({.offset = offset_,
                      .bytes = static_cast<std::uint32_t>(bytes.size()),
                      .label = static_cast<std::uint32_t>(label),
                      .height = static_cast<std::uint32_t>(height),
                      .width = static_cast<std::uint32_t>(width),
                      .checksum = pack_checksum(bytes)});
  return write(bytes.data(), bytes.size());
}

Status PackWriter::finish(PackHeader header, const Normalization& normalization,
                          const std::vector<std::string>& classes) {
  std::vector<std::uint8_t> index;
  append(index, records_.data(), records_.size() * sizeof(PackRecord));
  for (std::size_t channel = 0; channel < normalization.mean.size(); ++channel) {
    append(index, &normalization.mean[channel], sizeof(double));
    append(index, &normalization.deviation[channel], sizeof(double));
  }
  const auto count = static_cast<std::uint32_t>(classes.size());
  append(index, &count, sizeof count);
  for (const std::string& name : classes) {
    const auto length = static_cast<std::uint32_t>(name.size());
    append(index, &length, sizeof length);
    append(index, name.data(), name.size());
  }
  std::memcpy(header.magic, kPackMagic, sizeof header.magic);
  header.version = kPackVersion;
  header.index_offset = offset_;
  header.index_bytes = index.size();
  header.checksum = pack_checksum(header, index);
  Status status = write(index.data(), index.size());
  if (!status.ok()) return status;
  std::FILE* const file = file_.get();
  if (std::fseek(file, 0, SEEK_SET) != 0 || std::fwrite(&header, sizeof header, 1, file) != 1 ||
      std::fflush(file) != 0 || fsync(fileno(file)) != 0 ||
      std::rename(part().c_str(), path_.c_str()) != 0) {
    return refuse();
  }
  file_.reset();
  // Syncs the folder, so the name survives a power failure.
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const base::Fd opened{::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
  if (opened.open()) (void)fsync(opened.number());
  return {};
}

struct Packed {
  Status status;
  std::vector<std::uint8_t> bytes;
  int height = 0;
  int width = 0;
  PixelSums sums;
};

TargetSize target_of(int height, int width, int resize) {
  const int shorter = std::min(height, width);
  if (resize == 0 || shorter <= resize) return {height, width};
  const auto scaled = [&](int side) {
    return std::max(1, static_cast<int>(std::lround(static_cast<double>(side) * resize / shorter)));
  };
  return {scaled(height), scaled(width)};
}

// Packs images, one at a time. Every thread has its own.
class Packer {
 public:
  Packer(const Dataset& images, const PackOptions& options, bool raw)
      : images_{&images}, options_{&options}, raw_{raw} {}

  void pack(std::size_t sample, Packed& packed) {
    packed.sums = {};
    try {
      packed.status = try_pack(sample, packed);
    } catch (const std::bad_alloc&) {
      packed.status = named(sample, {Code::NoMemory, "needs more memory than there is"});
    }
  }

 private:
  Status try_pack(std::size_t sample, Packed& packed) {
    ImageView stored;
    Status status = images_->read(sample, buffer_, stored);
    if (!status.ok()) return status;  // the status names the sample
    ImageView pixels;
    TargetSize target{stored.height, stored.width};
    if (stored.storage == Storage::File) {
      status = decoder_.begin(stored.bytes);
      if (!status.ok()) return named(sample, status);
      target = target_of(decoder_.height(), decoder_.width(), options_->resize);
      const Crop whole{0, 0, static_cast<double>(decoder_.height()),
                       static_cast<double>(decoder_.width())};
      const bool smaller = target.height < decoder_.height();
      status = decoder_.finish(
          smaller ? largest_divisor(whole, std::min(target.height, target.width)) : 1, pixels);
      if (!status.ok()) return named(sample, status);
      const bool jpeg = stored.bytes[0] == 0xff;
      if (!smaller && jpeg && !raw_) {
        packed.bytes.assign(stored.bytes.begin(), stored.bytes.end());
        return describe(pixels, packed);
      }
    } else {
      target = target_of(stored.height, stored.width, options_->resize);
      pixels = interleaved(stored);
    }
    if (pixels.height != target.height || pixels.width != target.width) {
      resizer_.resize(pixels, target, resized_);
      pixels = resized_.view();
    }
    if (raw_) {
      packed.bytes.assign(pixels.bytes.begin(), pixels.bytes.end());
    } else {
      status = encoder_.encode(pixels, options_->quality, packed.bytes);
      if (!status.ok()) return named(sample, status);
    }
    return describe(pixels, packed);
  }

  Status named(std::size_t sample, const Status& status) const {
    return {status.code(), base::format("{} {}", images_->name(sample), status.message())};
  }

  static Status describe(const ImageView& pixels, Packed& packed) {
    packed.height = pixels.height;
    packed.width = pixels.width;
    packed.sums.add(pixels);
    return {};
  }

  ImageView interleaved(const ImageView& stored) {
    if (stored.storage == Storage::Interleaved) return stored;
    copy_as(Storage::Interleaved, stored, interleaved_);
    return interleaved_.view();
  }

  const Dataset* images_;
  const PackOptions* options_;
  bool raw_;
  std::vector<std::uint8_t> buffer_;
  ImageDecoder decoder_;
  JpegEncoder encoder_;
  Resizer resizer_;
  Image resized_;
  Image interleaved_;
};

struct PackJob {
  PackWriter writer;
  PackSummary summary;
  PixelSums sums;
  std::size_t done = 0;
  std::size_t of = 0;
};

Status pack_part(const Dataset& images, const PackOptions& options, bool raw, bool training,
                 std::size_t& written, PackJob& pack) {
  std::vector<std::unique_ptr<Packer>> packers;
  for (int i = 0; i < std::max(1, options.threads); ++i) {
    packers.push_back(std::make_unique<Packer>(images, options, raw));
  }
  std::vector<Packed> block(kBlock);
  for (std::size_t first = 0; first < images.size(); first += kBlock) {
    const std::size_t count = std::min(kBlock, images.size() - first);
    std::atomic<std::size_t> next = 0;
    {
      std::vector<std::jthread> threads;
      for (const std::unique_ptr<Packer>& packer : packers) {
        threads.emplace_back([&, one = packer.get()] {
          for (std::size_t i = next++; i < count; i = next++) one->pack(first + i, block[i]);
        });
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Packed& packed = block[i];
      if (!packed.status.ok()) {
        std::vector<std::string>& skipped = pack.summary.skipped;
        skipped.push_back(packed.status.message());
        if (skipped.size() > static_cast<std::size_t>(options.most_broken)) {
          return {Code::InvalidInput, base::format("more than {} images are broken, the last: {}",
                                                   options.most_broken, skipped.back())};
        }
        continue;
      }
      Status status =
          pack.writer.add(packed.bytes, images.label(first + i), packed.height, packed.width);
      if (!status.ok()) return status;
      if (training) pack.sums.add(packed.sums);
      ++written;
    }
    pack.done += count;
    if (options.progress) options.progress(pack.done, pack.of);
  }
  return {};
}

}  // namespace

Result<PackSummary> pack_images(const Data& data, const std::filesystem::path& file,
                                const PackOptions& options) {
  Result<PackWriter> writer = PackWriter::open(file);
  if (!writer.ok()) return writer.status();
  PackJob pack{std::move(writer).value(), {}, {}, 0, data.train->size() + data.validation->size()};
  const bool raw = options.raw || data.channels != 3;
  PackSummary& summary = pack.summary;
  Status status = pack_part(*data.train, options, raw, true, summary.train, pack);
  if (status.ok()) {
    status = pack_part(*data.validation, options, raw, false, summary.validation, pack);
  }
  if (!status.ok()) return status;
  if (summary.train == 0 || summary.validation == 0) {
    return Status{
        Code::InvalidInput,
        base::format("no {} image can be used: {}", summary.train == 0 ? "training" : "validation",
                     summary.skipped.empty() ? "there is none" : summary.skipped.back())};
  }
  PackHeader header;
  header.storage = static_cast<std::uint32_t>(raw ? Storage::Interleaved : Storage::File);
  header.channels = static_cast<std::uint32_t>(data.channels);
  header.resized = static_cast<std::uint32_t>(options.resize);
  header.train = summary.train;
  header.validation = summary.validation;
  status = pack.writer.finish(header, pack.sums.statistics(data.channels), data.classes);
  if (!status.ok()) return status;
  summary.classes = data.classes.size();
  summary.bytes = pack.writer.bytes();
  return summary;
}

}  // namespace sluice::data
