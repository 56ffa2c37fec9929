// resample.h - the two halves of making an image smaller or larger: a row out of rows, a row of
// pixels out of a row of pixels.
//
// Sums are added in the order of the taps, one rounding each, with every instruction set: the same
// bits on every machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace sluice::kernels {

// What each output element takes of its input: `count` weights, for input `first` and those after.
struct Taps {
  std::size_t count = 0;
  std::vector<std::size_t> first;
  std::vector<float> weights;  // first.size() x count
};

// out[i] = sum over k < rows of weights[k] * from[k * stride + i], for i < count.
void blend_rows(const std::uint8_t* from, std::size_t stride, const float* weights,
                std::size_t rows, std::size_t count, float* out);

// A row of three interleaved channels as three rows, each value times scale plus shift of its
// channel. REQUIRES: 4 readable floats from every pixel on: one more than the row has.
void blend_pixels(const float* row, const Taps& taps, const float* scale, const float* shift,
                  float* const* out);

}  // namespace sluice::kernels
