#include "data/image/crop.h"

#include <algorithm>
#include <cmath>

namespace sluice::data {
namespace {

double uniform(base::Random& random, double least, double most) {
  return least + (most - least) * static_cast<double>(random.next() >> 11U) * 0x1p-53;
}

}  // namespace

Crop random_crop(const CropRange& range, int height, int width, base::Random& random) {
  const double area = static_cast<double>(height) * width;
  for (int attempt = 0; attempt < 10; ++attempt) {
    const double wanted = area * uniform(random, range.least_area, range.most_area);
    const double aspect =
        std::exp(uniform(random, std::log(range.least_aspect), std::log(range.most_aspect)));
    const double w = std::round(std::sqrt(wanted * aspect));
    const double h = std::round(std::sqrt(wanted / aspect));
    if (w < 1 || h < 1 || w > width || h > height) continue;
    const auto places = [&random](double room) {
      return static_cast<double>(random.below(static_cast<std::uint64_t>(room) + 1));
    };
    const double top = places(height - h);
    const double left = places(width - w);
    return {top, left, h, w};
  }
  const double aspect =
      std::clamp(static_cast<double>(width) / height, range.least_aspect, range.most_aspect);
  const double w = std::clamp(std::floor(height * aspect), 1.0, static_cast<double>(width));
  const double h = std::clamp(std::floor(width / aspect), 1.0, static_cast<double>(height));
  return {(height - h) / 2, (width - w) / 2, h, w};
}

Crop centre_crop(double part, int height, int width) {
  const double side = std::max(1.0, part * std::min(height, width));
  return {(height - side) / 2, (width - side) / 2, side, side};
}

int largest_divisor(const Crop& crop, int side) {
  int divisor = 1;
  while (divisor < 8 && std::min(crop.height, crop.width) >= 2.0 * divisor * side) divisor *= 2;
  return divisor;
}

}  // namespace sluice::data
