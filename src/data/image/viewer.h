// viewer.h - a stored image as the numbers that a network takes: decoded, cropped, resized,
// mirrored and normalised.
//
// Every random choice is a function of (seed, epoch, sample): any rank and any thread, at any time,
// sees a sample of an epoch the same way.
#pragma once

#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/image/image_decoder.h"
#include "data/image/resizer.h"
#include "sluice/status.h"

namespace sluice::data {

enum class ViewKind : std::uint8_t {
  Whole,        // the image; one of another size has its middle square resized
  Shifted,      // the same, shifted by up to `padding` pixels and mirrored at random
  ResizedCrop,  // a random crop, resized and mirrored at random: training on photographs
  CentreCrop,   // `centre` of the middle square, resized: validation on photographs
};

struct ViewOptions {
  ViewKind kind = ViewKind::Whole;
  int padding = 4;
  bool flip = true;
  CropRange crop;
  double centre = 0.875;  // 224 of 256
};

// Row y of the view is row y + down of the image, column x is column x + right. The view is then
// mirrored if `flipped`.
struct Shift {
  int down = 0;
  int right = 0;
  bool flipped = false;
};

// Draws each offset from -padding to padding.
Shift random_shift(int padding, bool flip, std::uint64_t seed, const SampleRef& ref);

// Writes normalised planes of the size of the image. Outside the image they are 0, the mean.
// REQUIRES: the image is stored as planes.
void render(const ImageView& image, const Normalization& normalization, const Shift& shift,
            float* out);

// Thread-safety: one thread at a time; make one object for each thread.
class Viewer {
 public:
  // Views are image x image, with as many channels as `normalization` has.
  Viewer(const ViewOptions& options, Normalization normalization, int image, std::uint64_t seed);

  // Writes channels x image x image values. A status does not name the image.
  Status view(const ImageView& stored, const SampleRef& ref, float* out);

 private:
  Status decode_pixels(const ImageView& stored, const Crop& crop, ImageView& pixels);
  Status view_shifted(const ImageView& stored, const SampleRef& ref, float* out);

  ViewOptions options_;
  Normalization normalization_;
  int image_;
  std::uint64_t seed_;
  ImageDecoder decoder_;
  Resizer resizer_;
  Image interleaved_;
  std::vector<float> resized_;  // before the shift
};

}  // namespace sluice::data
