// no_gzip.cc - stands in for gzip.cc where zlib was not found.
#include "data/formats/file_bytes.h"
#include "data/formats/gzip.h"

namespace sluice::data {

Status read_maybe_gzipped(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes) {
  Status status = read_bytes(path, bytes);
  if (!status.ok() || bytes.size() < 2 || bytes[0] != 0x1f || bytes[1] != 0x8b) return status;
  return {Code::InvalidInput,
          "is compressed, and Sluice was built without zlib: gunzip it, or install zlib1g-dev and "
          "build Sluice again"};
}

}  // namespace sluice::data
