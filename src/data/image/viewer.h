// viewer.h - a stored image as the numbers a network takes: decoded, cropped, brought to size,
// mirrored, normalised.
//
// What is random is a function of (seed, epoch, sample): any rank and thread, at any time, sees a
// sample of an epoch the same way.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "data/dataset.h"
#include "data/image/crop.h"
#include "data/image/image_decoder.h"
#include "data/image/normalization.h"
#include "data/image/resizer.h"
#include "data/loader/sample_ref.h"
#include "sluice/status.h"

namespace sluice::data {

enum class ViewKind : std::uint8_t {
  Whole,        // as it is; where its size is another, its middle square brought to size
  Shifted,      // the same, moved by up to `padding` pixels and mirrored
  ResizedCrop,  // a random part, brought to size, and mirrored: training on photographs
  CentreCrop,   // `centre` of the middle square, brought to size: their validation
};

struct ViewOptions {
  ViewKind kind = ViewKind::Whole;
  int padding = 4;
  bool flip = true;
  CropRange crop;
  double centre = 0.875;  // 224 of 256
};

// Thread-safety: one thread at a time; make one for each.
class Viewer {
 public:
  // Views are image x image, with as many channels as `normalization` has.
  Viewer(const ViewOptions& options, Normalization normalization, int image, std::uint64_t seed);

  // Writes channels x image x image values. A status does not name the image.
  Status view(const StoredImage& stored, const SampleRef& which, float* out);

 private:
  Status pixels_of(const StoredImage& stored, const Crop& crop, PixelView& pixels);
  Status shifted(const StoredImage& stored, const SampleRef& which, float* out);

  ViewOptions options_;
  Normalization normalization_;
  int image_;
  std::uint64_t seed_;
  ImageDecoder decoder_;
  Resizer resizer_;
  Pixels interleaved_;
  std::vector<float> unmoved_;
};

}  // namespace sluice::data
