// loading.h - how a recipe's images are read.
#pragma once

#include "data/data.h"
#include "data/loader/loader.h"
#include "recipe/recipe.h"

namespace sluice {

// `threads` below 0: none for images in memory, else one.
LoaderOptions plain_loading(const Recipe& recipe, const Data& data, const Dataset& set,
                            int threads);
LoaderOptions augmented_loading(const Recipe& recipe, const Data& data, int threads);
// The same at every rank and in every epoch.
LoaderOptions validation_loading(const Recipe& recipe, const Data& data, int threads);

}  // namespace sluice
