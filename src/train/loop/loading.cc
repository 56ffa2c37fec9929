#include "train/loop/loading.h"

#include "data/formats/memory_dataset.h"

namespace sluice {
namespace {

int threads_for(const Dataset& set, int threads) {
  if (threads >= 0) return threads;
  return dynamic_cast<const MemoryDataset*>(&set) != nullptr ? 0 : 1;
}

bool crops(const Recipe& recipe) { return recipe.augmentation == AugmentationKind::ResizedCrop; }

}  // namespace

// Photographs that are cropped while they are augmented have their middle taken when they are not.
LoaderOptions plain_loading(const Recipe& recipe, const Data& data, const Dataset& set,
                            int threads) {
  return {.threads = threads_for(set, threads),
          .view = {.kind = crops(recipe) ? ViewKind::CentreCrop : ViewKind::Whole},
          .normalization = data.normalization,
          .seed = recipe.seed,
          .image = recipe.image};
}

LoaderOptions augmented_loading(const Recipe& recipe, const Data& data, int threads) {
  LoaderOptions options = plain_loading(recipe, data, *data.train, threads);
  if (recipe.augmentation == AugmentationKind::None) return options;
  options.view = {.kind = crops(recipe) ? ViewKind::ResizedCrop : ViewKind::Shifted,
                  .padding = recipe.padding,
                  .flip = recipe.flip,
                  .crop = {.least_area = recipe.crop_area.least,
                           .most_area = recipe.crop_area.most,
                           .least_aspect = recipe.crop_aspect.least,
                           .most_aspect = recipe.crop_aspect.most}};
  return options;
}

LoaderOptions validation_loading(const Recipe& recipe, const Data& data, int threads) {
  LoaderOptions options = plain_loading(recipe, data, *data.validation, threads);
  options.may_be_empty = true;
  return options;
}

}  // namespace sluice
