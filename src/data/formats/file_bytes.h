// file_bytes.h - a file as bytes in memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sluice/status.h"

namespace sluice::data {

// Into `bytes`, whose memory is used again. The message does not name the file: "cannot be read:
// No such file or directory".
Status read_bytes(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes);

}  // namespace sluice::data
