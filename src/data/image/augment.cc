#include "data/image/augment.h"

#include <algorithm>
#include <cassert>

#include "base/random.h"

namespace sluice::data {

View random_view(const Augmentation& augmentation, std::uint64_t seed, std::uint64_t epoch,
                 std::uint64_t sample) {
  base::Random random{base::mixed({seed, epoch, sample})};
  const std::uint64_t places = 2 * static_cast<std::uint64_t>(augmentation.padding) + 1;
  View view;
  view.top = static_cast<int>(random.below(places));
  view.left = static_cast<int>(random.below(places));
  view.flipped = augmentation.flip && random.below(2) == 1;
  return view;
}

void render(const StoredImage& image, const Normalization& normalization, int padding,
            const View& view, float* out) {
  const auto channels = static_cast<std::size_t>(image.channels);
  assert(image.storage == Storage::Planes && normalization.mean.size() == channels);
  const int down = view.top - padding;  // row y of the view is row y + down of the image
  const int right = view.left - padding;
  // Columns of the view, before it is mirrored, that lie in the image.
  const int first = std::clamp(-right, 0, image.width);
  const int last = std::clamp(image.width - right, first, image.width);
  const std::uint8_t* plane = image.bytes.data();
  for (std::size_t channel = 0; channel < channels; ++channel) {
    const auto mean = static_cast<float>(normalization.mean[channel]);
    const auto scale = static_cast<float>(1 / normalization.deviation[channel]);
    for (int y = 0; y < image.height; ++y, out += image.width) {
      const int row = y + down;
      if (row < 0 || row >= image.height) {
        std::fill_n(out, image.width, 0.0F);
        continue;
      }
      const std::uint8_t* const pixels = plane + std::ptrdiff_t{row} * image.width + right;
      std::fill_n(out, first, 0.0F);
      for (int x = first; x < last; ++x) out[x] = (static_cast<float>(pixels[x]) - mean) * scale;
      std::fill_n(out + last, image.width - last, 0.0F);
      if (view.flipped) std::reverse(out, out + image.width);
    }
    plane += std::ptrdiff_t{image.height} * image.width;
  }
}

}  // namespace sluice::data
