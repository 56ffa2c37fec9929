#include "data/dataset.h"

#include <utility>

#include "base/format.h"

namespace sluice::data {

Status Dataset::read(std::size_t sample, std::vector<std::uint8_t>& buffer,
                     StoredImage& stored) const {
  Image image;
  image.pixels.swap(buffer);
  Status status = decode(sample, image);
  buffer.swap(image.pixels);
  stored = {Storage::Planes, image.channels, image.height, image.width,
            std::span{buffer}.first(status.ok() ? image.size() : 0)};
  return status;
}

std::string Dataset::name(std::size_t sample) const { return base::format("sample {}", sample); }

}  // namespace sluice::data
