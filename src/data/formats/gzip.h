// gzip.h - a file that may be compressed, by zlib.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sluice/status.h"

namespace sluice::data {

// All of a file's bytes, as they were before gzip where it is a gzip file. The message does not
// name the file. One that ends early, or whose checksum is wrong, is refused.
Status read_maybe_gzipped(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes);

}  // namespace sluice::data
