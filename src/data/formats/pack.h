// pack.h - pack:FILE: all images of a data set in one file that is mapped into memory.
//
// docs/pack-format.md says what the file holds. Opening reads header and index and proves them by
// their checksum; a record is proven when it is first read, so damage costs one image and is named.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/data.h"

namespace sluice::data {

inline constexpr char kPackMagic[9] = "SLUICEPK";
inline constexpr std::uint32_t kPackVersion = 1;

// As in the file, little-endian.
struct PackHeader {
  char magic[8] = {};
  std::uint32_t version = kPackVersion;
  std::uint32_t storage = 0;  // a Storage: File or Interleaved
  std::uint32_t channels = 0;
  std::uint32_t resized =
      0;                    // the shorter side of larger images was brought to this; 0: to nothing
  std::uint64_t train = 0;  // records; those to validate follow
  std::uint64_t validation = 0;
  std::uint64_t index_offset = 0;
  std::uint64_t index_bytes = 0;
  std::uint64_t checksum = 0;  // of what is above and of the index
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
// Of the header up to its checksum, then the index.
std::uint64_t pack_checksum(const PackHeader& header, std::span<const std::uint8_t> index);

// A file that is truncated, damaged, of another version or no pack is refused. It must not be
// shortened while it is in use.
Result<Data> open_pack(const std::filesystem::path& file);

}  // namespace sluice::data
