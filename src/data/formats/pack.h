// pack.h - pack:FILE: all images of a data set in one file that is mapped into memory.
//
// docs/pack-format.md describes the file. Opening it reads header and index and verifies their
// checksum. A record is verified when it is first read, so damage costs one image, and the message
// names it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/data.h"
#include "sluice/status.h"

namespace sluice::data {

inline constexpr char kPackMagic[9] = "SLUICEPK";
inline constexpr std::uint32_t kPackVersion = 1;

// As in the file, little-endian.
struct PackHeader {
  char magic[8] = {};
  std::uint32_t version = kPackVersion;
  std::uint32_t storage = 0;  // a Storage: File or Interleaved
  std::uint32_t channels = 0;
  std::uint32_t resized = 0;  // larger images were resized to this shorter side; 0: none were
  std::uint64_t train = 0;    // training records; the validation records follow
  std::uint64_t validation = 0;
  std::uint64_t index_offset = 0;
  std::uint64_t index_bytes = 0;
  std::uint64_t checksum = 0;  // of the members above and of the index
};
static_assert(sizeof(PackHeader) == 64);

struct PackRecord {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
  std::uint32_t label = 0;
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::uint64_t checksum = 0;  // XXH64 of the bytes
};
static_assert(sizeof(PackRecord) == 32);

std::uint64_t pack_checksum(std::span<const std::uint8_t> bytes);
// The checksum of the header, up to its own checksum, and then of the index.
std::uint64_t pack_checksum(const PackHeader& header, std::span<const std::uint8_t> index);

// Refuses a file that is truncated, damaged, of another version or not a pack file. The file must
// not be shortened while it is in use.
Result<Data> open_pack(const std::filesystem::path& file);

struct PackOptions {
  int resize = 0;    // resize images with a longer shorter side to this shorter side; 0: never
  bool raw = false;  // store pixels instead of JPEG files; grey images always are stored so
  int quality = 90;
  int threads = 1;
  int most_broken = 100;
  // Called from time to time, by the caller's thread.
  std::function<void(std::size_t done, std::size_t of)> progress;
};

struct PackSummary {
  std::size_t train = 0;
  std::size_t validation = 0;
  std::size_t classes = 0;
  std::uint64_t bytes = 0;
  std::vector<std::string> skipped;  // a sentence for each broken image
};

// Writes a data set to a pack file. JPEG files that need no resizing are copied. Broken images are
// left out. After an error, such as more than most_broken images, `file` is as it was before.
Result<PackSummary> pack_images(const Data& data, const std::filesystem::path& file,
                                const PackOptions& options);

}  // namespace sluice::data
