// random_images.h - images of random pixels, ten classes: to measure and to try with. There is
// nothing to learn from them.
#pragma once

#include <filesystem>

#include "data/data.h"
#include "sluice/status.h"

namespace sluice::data {

inline constexpr int kRandomTrain = 1024;
inline constexpr int kRandomValidation = 256;
inline constexpr int kRandomClasses = 10;

// `side` is a whole number from 8 to 512: height and width. Three channels.
Result<Data> open_random(const std::filesystem::path& side);

}  // namespace sluice::data
