#include "data/image/resizer.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

namespace sluice::data {
namespace {

constexpr std::size_t kColours = 3;
constexpr std::size_t kMostChannels = 4;

// Sets the weights of `size` outputs that cover input pixels [begin, begin + length) of `inputs`.
void set_taps(double begin, double length, int inputs, int size, bool mirrored,
              kernels::Taps& taps) {
  const double scale = length / size;
  const double reach = std::max(1.0, scale);
  const auto lowest = static_cast<int>(std::clamp(std::floor(begin), 0.0, inputs - 1.0));
  const auto end = static_cast<int>(
      std::clamp(std::ceil(begin + length), lowest + 1.0, static_cast<double>(inputs)));
  const int count = std::min(static_cast<int>(std::ceil(2 * reach)) + 1, end - lowest);
  taps.count = static_cast<std::size_t>(count);
  taps.first.resize(static_cast<std::size_t>(size));
  taps.weights.resize(taps.first.size() * taps.count);
  for (int i = 0; i < size; ++i) {
    const double centre = begin + (i + 0.5) * scale;
    const auto first =
        std::clamp(static_cast<int>(std::floor(centre - reach)), lowest, end - count);
    const auto at = static_cast<std::size_t>(mirrored ? size - 1 - i : i);
    taps.first[at] = static_cast<std::size_t>(first);
    float* const weights = taps.weights.data() + at * taps.count;
    double sum = 0;
    for (int k = 0; k < count; ++k) {
      const double weight = std::max(0.0, 1 - std::abs(first + k + 0.5 - centre) / reach);
      weights[k] = static_cast<float>(weight);
      sum += weight;
    }
    for (int k = 0; k < count; ++k) weights[k] *= static_cast<float>(1 / sum);
  }
}

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
    const auto position = [&random](double room) {
      return static_cast<double>(random.below(static_cast<std::uint64_t>(room) + 1));
    };
    const double top = position(height - h);
    const double left = position(width - w);
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

void Resizer::blend_row(const kernels::Taps& taps, int channels, float* const* out) {
  if (channels == static_cast<int>(kColours)) {
    kernels::blend_pixels(row_.data(), taps, scale_.data(), shift_.data(), out);
    return;
  }
  const auto step = static_cast<std::size_t>(channels);
  for (std::size_t channel = 0; channel < step; ++channel) {
    for (std::size_t x = 0; x < taps.first.size(); ++x) {
      float sum = 0;
      for (std::size_t k = 0; k < taps.count; ++k) {
        sum += taps.weights[x * taps.count + k] * row_[(taps.first[x] + k) * step + channel];
      }
      out[channel][x] = sum * scale_[channel] + shift_[channel];
    }
  }
}

void Resizer::resize(const ImageView& image, const Crop& crop, TargetSize size, bool flipped,
                     const Normalization& normalization, float* out) {
  const auto channels = static_cast<std::size_t>(image.channels);
  assert(normalization.mean.size() == channels && channels <= kMostChannels);
  set_taps(crop.top, crop.height, image.height, size.height, false, vertical_);
  set_taps(crop.left, crop.width, image.width, size.width, flipped, horizontal_);
  scale_.resize(channels);
  shift_.resize(channels);
  for (std::size_t channel = 0; channel < channels; ++channel) {
    scale_[channel] = static_cast<float>(1 / normalization.deviation[channel]);
    shift_[channel] =
        static_cast<float>(-normalization.mean[channel] / normalization.deviation[channel]);
  }
  // Vertically first: rows are contiguous, and the horizontal pass then has fewer of them. Only
  // columns that some output needs are blended.
  const auto [least, most] =
      std::minmax_element(horizontal_.first.begin(), horizontal_.first.end());
  const std::size_t left = *least * channels;
  const std::size_t count = (*most + horizontal_.count) * channels - left;
  row_.resize(image.row_bytes() + kColours);
  const auto width = static_cast<std::size_t>(size.width);
  const std::size_t plane = width * static_cast<std::size_t>(size.height);
  for (std::size_t y = 0; y < vertical_.first.size(); ++y) {
    kernels::blend_rows(image.bytes.data() + vertical_.first[y] * image.row_bytes() + left,
                        image.row_bytes(), vertical_.weights.data() + y * vertical_.count,
                        vertical_.count, count, row_.data() + left);
    std::array<float*, kMostChannels> rows{};
    for (std::size_t channel = 0; channel < channels; ++channel) {
      rows[channel] = out + channel * plane + y * width;
    }
    blend_row(horizontal_, image.channels, rows.data());
  }
}

void Resizer::resize(const ImageView& image, TargetSize size, Image& out) {
  const auto channels = static_cast<std::size_t>(image.channels);
  out.resize(Storage::Interleaved, image.channels, size.height, size.width);
  planes_.resize(out.pixels.size());
  const Normalization none{std::vector<double>(channels, 0), std::vector<double>(channels, 1)};
  resize(image, {0, 0, static_cast<double>(image.height), static_cast<double>(image.width)}, size,
         false, none, planes_.data());
  const std::size_t plane = out.pixels.size() / channels;
  for (std::size_t i = 0; i < plane; ++i) {
    for (std::size_t channel = 0; channel < channels; ++channel) {
      const float value = std::clamp(planes_[channel * plane + i] + 0.5F, 0.0F, 255.0F);
      out.pixels[i * channels + channel] = static_cast<std::uint8_t>(value);
    }
  }
}

}  // namespace sluice::data
