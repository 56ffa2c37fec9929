// crop.h - which part of an image a network sees.
#pragma once

#include "base/random.h"

namespace sluice::data {

// A rectangle, in pixels from the top left corner.
struct Crop {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
};

struct CropRange {
  double least_area = 0.08;  // of the image's
  double most_area = 1;
  double least_aspect = 3.0 / 4;  // width to height, drawn evenly on a logarithmic scale
  double most_aspect = 4.0 / 3;
};

// Szegedy et al. 2015: area and aspect at random, then a place; after ten that do not fit, the
// largest in the middle whose aspect is in the range.
Crop random_crop(const CropRange& range, int height, int width, base::Random& random);

// A square in the middle, whose side is that part of the image's shorter side.
Crop centre_crop(double part, int height, int width);

// By how much (1, 2, 4 or 8) the image may be made smaller before the crop has fewer than
// side x side pixels.
int largest_divisor(const Crop& crop, int side);

}  // namespace sluice::data
