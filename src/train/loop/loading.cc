#include "train/loop/loading.h"

#include "data/formats/memory_dataset.h"

namespace sluice::train {
namespace {

int threads_for(const data::Dataset& set, int threads) {
  if (threads >= 0) return threads;
  return dynamic_cast<const data::MemoryDataset*>(&set) != nullptr ? 0 : 1;
}

bool crops(const recipe::Recipe& recipe) {
  return recipe.augmentation == recipe::AugmentationKind::ResizedCrop;
}

}  // namespace

// Photographs that are cropped while they are augmented have their middle taken when they are not.
data::LoaderOptions plain_loading(const recipe::Recipe& recipe, const data::Data& data,
                                  const data::Dataset& set, int threads) {
  return {.threads = threads_for(set, threads),
          .view = {.kind = crops(recipe) ? data::ViewKind::CentreCrop : data::ViewKind::Whole},
          .normalization = data.normalization,
          .seed = recipe.seed,
          .image = recipe.image};
}

data::LoaderOptions augmented_loading(const recipe::Recipe& recipe, const data::Data& data,
                                      int threads) {
  data::LoaderOptions options = plain_loading(recipe, data, *data.train, threads);
  if (recipe.augmentation == recipe::AugmentationKind::None) return options;
  options.view = {.kind = crops(recipe) ? data::ViewKind::ResizedCrop : data::ViewKind::Shifted,
                  .padding = recipe.padding,
                  .flip = recipe.flip,
                  .crop = {.least_area = recipe.crop_area.least,
                           .most_area = recipe.crop_area.most,
                           .least_aspect = recipe.crop_aspect.least,
                           .most_aspect = recipe.crop_aspect.most}};
  return options;
}

data::LoaderOptions validation_loading(const recipe::Recipe& recipe, const data::Data& data,
                                       int threads) {
  data::LoaderOptions options = plain_loading(recipe, data, *data.validation, threads);
  options.may_be_empty = true;
  return options;
}

}  // namespace sluice::train
