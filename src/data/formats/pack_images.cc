#include "data/formats/pack_images.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <new>
#include <thread>
#include <utility>

#include "base/format.h"
#include "data/formats/pack_writer.h"
#include "data/image/image_decoder.h"
#include "data/image/jpeg.h"
#include "data/image/resizer.h"

namespace sluice::data {
namespace {

// Made in parallel, then written in order.
constexpr std::size_t kBlock = 256;

// Sums over pixels, for mean and deviation; whole numbers, so that their order does not matter.
struct PixelSums {
  std::array<std::uint64_t, 4> sum{};
  std::array<std::uint64_t, 4> squares{};
  std::uint64_t pixels = 0;

  void add(const PixelView& view) {
    const auto channels = static_cast<std::size_t>(view.channels);
    for (std::size_t i = 0; i < view.bytes(); ++i) {
      sum[i % channels] += view.data[i];
      squares[i % channels] += std::uint64_t{view.data[i]} * view.data[i];
    }
    pixels += view.bytes() / channels;
  }

  void add(const PixelSums& other) {
    for (std::size_t channel = 0; channel < sum.size(); ++channel) {
      sum[channel] += other.sum[channel];
      squares[channel] += other.squares[channel];
    }
    pixels += other.pixels;
  }

  Normalization statistics(int channels) const {
    Normalization result;
    const auto count = static_cast<double>(std::max<std::uint64_t>(1, pixels));
    for (std::size_t channel = 0; channel < static_cast<std::size_t>(channels); ++channel) {
      const double mean = static_cast<double>(sum[channel]) / count;
      const double variance = static_cast<double>(squares[channel]) / count - mean * mean;
      result.mean.push_back(mean);
      result.deviation.push_back(std::sqrt(std::max(variance, 0.25)));
    }
    return result;
  }
};

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

// One thread's.
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
    StoredImage stored;
    Status status = images_->read(sample, buffer_, stored);
    if (!status.ok()) return status;  // it names the sample
    PixelView pixels;
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
        return described(pixels, packed);
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
      packed.bytes.assign(pixels.data, pixels.data + pixels.bytes());
    } else {
      status = encoder_.encode(pixels, options_->quality, packed.bytes);
      if (!status.ok()) return named(sample, status);
    }
    return described(pixels, packed);
  }

  Status named(std::size_t sample, const Status& status) const {
    return {status.code(), base::format("{} {}", images_->name(sample), status.message())};
  }

  static Status described(const PixelView& pixels, Packed& packed) {
    packed.height = pixels.height;
    packed.width = pixels.width;
    packed.sums.add(pixels);
    return {};
  }

  PixelView interleaved(const StoredImage& stored) {
    if (stored.storage == Storage::Interleaved) {
      return {stored.bytes.data(), stored.channels, stored.height, stored.width};
    }
    interleaved_.resize(stored.channels, stored.height, stored.width);
    const auto channels = static_cast<std::size_t>(stored.channels);
    const std::size_t plane = stored.bytes.size() / channels;
    for (std::size_t i = 0; i < stored.bytes.size(); ++i) {
      interleaved_.values[i % plane * channels + i / plane] = stored.bytes[i];
    }
    return interleaved_.view();
  }

  const Dataset* images_;
  const PackOptions* options_;
  bool raw_;
  std::vector<std::uint8_t> buffer_;
  ImageDecoder decoder_;
  JpegEncoder encoder_;
  Resizer resizer_;
  Pixels resized_;
  Pixels interleaved_;
};

struct Pack {
  PackWriter writer;
  PackSummary summary;
  PixelSums sums;
  std::size_t done = 0;
  std::size_t of = 0;
};

Status pack_part(const Dataset& images, const PackOptions& options, bool raw, bool learnt_from,
                 std::size_t& written, Pack& pack) {
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
      if (learnt_from) pack.sums.add(packed.sums);
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
  Pack pack{std::move(writer).value(), {}, {}, 0, data.train->size() + data.validation->size()};
  const bool raw = options.raw || data.channels != 3;
  PackSummary& summary = pack.summary;
  Status status = pack_part(*data.train, options, raw, true, summary.train, pack);
  if (status.ok()) {
    status = pack_part(*data.validation, options, raw, false, summary.validation, pack);
  }
  if (!status.ok()) return status;
  if (summary.train == 0 || summary.validation == 0) {
    return Status{Code::InvalidInput,
                  base::format("no image to {} can be used: {}",
                               summary.train == 0 ? "learn from" : "validate",
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
