// augment.h - an image as a network sees it: moved and mirrored at random, and normalised.
#pragma once

#include <cstdint>

#include "data/dataset.h"
#include "data/image/normalization.h"

namespace sluice::data {

struct Augmentation {
  int padding = 4;  // how far an image may move, in pixels
  bool flip = true;
};

// Where in the padded image the view begins, and whether it is mirrored.
struct View {
  int top = 0;
  int left = 0;
  bool flipped = false;
};

// A function of its arguments: any rank, at any time, sees sample and epoch the same way.
View random_view(const Augmentation& augmentation, std::uint64_t seed, std::uint64_t epoch,
                 std::uint64_t sample);

// Writes as many values as the image has. `padding` is what the view was drawn with; what lies
// outside the image is the mean, 0. Without augmentation: padding 0 and View{}.
// REQUIRES: the image is stored as planes.
void render(const StoredImage& image, const Normalization& normalization, int padding,
            const View& view, float* out);

}  // namespace sluice::data
