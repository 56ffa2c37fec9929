// resizer.h - a part of an image at another size.
//
// Every pixel is the mean of those under it, weighted by a triangle that is as wide as two of its
// own pixels: bilinear where an image grows, without moire where it shrinks.
#pragma once

#include <vector>

#include "data/image/crop.h"
#include "data/image/normalization.h"
#include "data/image/pixels.h"
#include "kernels/resample.h"

namespace sluice::data {

struct TargetSize {
  int height = 0;
  int width = 0;
};

// Thread-safety: one thread at a time; make one for each.
class Resizer {
 public:
  // Normalised, plane after plane, mirrored if `flipped`. Only pixels inside the crop count.
  // REQUIRES: the crop lies in the image; as many channels as in `normalization`.
  void resize(const PixelView& image, const Crop& crop, TargetSize size, bool flipped,
              const Normalization& normalization, float* out);
  // All of it, as pixels.
  void resize(const PixelView& image, TargetSize size, Pixels& out);

 private:
  void blend_row(const kernels::Taps& taps, int channels, float* const* out);

  kernels::Taps down_;
  kernels::Taps across_;
  std::vector<float> row_;
  std::vector<float> planes_;
  std::vector<float> scale_;
  std::vector<float> shift_;
};

}  // namespace sluice::data
