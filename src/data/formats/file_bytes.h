// file_bytes.h - a file as bytes in memory, also a compressed one. No message names the file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sluice/status.h"

namespace sluice::data {

// Reads a file into `bytes`, whose memory is reused. An error reads "cannot be read: No such file
// or directory".
Status read_bytes(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes);

// Replaces the bytes of a gzip file by their content. Refuses a file that ends early or has a wrong
// checksum. gzip.cc implements it with zlib; no_gzip.cc refuses every file.
Status gunzip(std::vector<std::uint8_t>& bytes);

// Reads a file that may be a gzip file, by its first bytes, not its name.
Status read_maybe_gzipped(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes);

}  // namespace sluice::data
