// no_gzip.cc - replaces gzip.cc in a build without zlib.
#include "data/formats/file_bytes.h"

namespace sluice::data {

Status gunzip(std::vector<std::uint8_t>& /*bytes*/) {
  return {Code::InvalidInput,
          "is compressed, and Sluice was built without zlib: gunzip it, or install zlib1g-dev and "
          "build Sluice again"};
}

}  // namespace sluice::data
