// resample.h - the two passes of resizing an image: first it blends rows, then the pixels of a row.
//
// Sums are added in the order of the taps. Each product and each sum is rounded by itself, so that
// all machines get the same bits. Thread-safety: no state.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::kernels {

// Output element x is the sum of `count` inputs from first[x] on, each times its weight.
struct Taps {
  std::size_t count = 0;
  std::vector<std::size_t> first;
  std::vector<float> weights;  // first.size() x count
};

// out[i] = sum over k < rows of weights[k] * from[k * stride + i], for i < count.
void blend_rows(const std::uint8_t* from, std::size_t stride, const float* weights,
                std::size_t rows, std::size_t count, float* out);

// Blends the pixels of a row of three interleaved channels into three rows, one for each channel.
// Then multiplies each value by the scale of its channel and adds its shift.
// REQUIRES: one more readable float follows the row, because 4 floats are loaded at each pixel.
void blend_pixels(const float* row, const Taps& taps, const float* scale, const float* shift,
                  float* const* out);

}  // namespace sluice::kernels
