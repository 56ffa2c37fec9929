// loading.h - how a recipe's images are read.
#pragma once

#include "data/data.h"
#include "data/loader/loader.h"
#include "recipe/recipe.h"

namespace sluice::train {

// `threads` below 0: none for images in memory, else one.
data::LoaderOptions plain_loading(const recipe::Recipe& recipe, const data::Data& data,
                                  const data::Dataset& set, int threads);
data::LoaderOptions augmented_loading(const recipe::Recipe& recipe, const data::Data& data,
                                      int threads);
// The same at every rank and in every epoch.
data::LoaderOptions validation_loading(const recipe::Recipe& recipe, const data::Data& data,
                                       int threads);

}  // namespace sluice::train
