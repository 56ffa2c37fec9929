// resizer.h - the part of an image that a network sees, at the size that it takes.
//
// A pixel of the result is a weighted mean of the pixels under it. The weights form a triangle two
// pixels of the result wide: this is bilinear where an image grows, and does not alias where it
// shrinks.
#pragma once

#include <vector>

#include "base/random.h"
#include "data/image/image.h"
#include "kernels/resample.h"

namespace sluice::data {

// A rectangle, in pixels from the top left corner.
struct Crop {
  double top = 0;
  double left = 0;
  double height = 0;
  double width = 0;
};

struct CropRange {
  double least_area = 0.08;  // as a part of the image's area
  double most_area = 1;
  double least_aspect = 3.0 / 4;  // width / height, uniform on a logarithmic scale
  double most_aspect = 4.0 / 3;
};

// Draws area and aspect, then a position (Szegedy et al. 2015). After ten draws that do not fit it
// takes the largest crop in the middle with an aspect in the range.
Crop random_crop(const CropRange& range, int height, int width, base::Random& random);

// A square in the middle; its side is `part` of the shorter side of the image.
Crop centre_crop(double part, int height, int width);

// The largest of 1, 2, 4 and 8 by which the image can be divided and still have side x side pixels
// in the crop.
int largest_divisor(const Crop& crop, int side);

struct TargetSize {
  int height = 0;
  int width = 0;
};

// Thread-safety: one thread at a time; make one object for each thread.
class Resizer {
 public:
  // Writes normalised planes, mirrored if `flipped`. Pixels outside the crop have no influence.
  // REQUIRES: the image is interleaved and has as many channels as `normalization`; the crop lies
  // in it.
  void resize(const ImageView& image, const Crop& crop, TargetSize size, bool flipped,
              const Normalization& normalization, float* out);
  // Resizes the whole image, to interleaved pixels.
  void resize(const ImageView& image, TargetSize size, Image& out);

 private:
  void blend_row(const kernels::Taps& taps, int channels, float* const* out);

  kernels::Taps vertical_;
  kernels::Taps horizontal_;
  std::vector<float> row_;
  std::vector<float> planes_;
  std::vector<float> scale_;
  std::vector<float> shift_;
};

}  // namespace sluice::data
