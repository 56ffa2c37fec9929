#include "recipe/recipe_check.h"

#include <numeric>

#include "base/format.h"
#include "recipe/models.h"

namespace sluice::recipe {

namespace {

std::optional<RecipeComplaint> check_rmsprop(const Recipe& recipe) {
  if (recipe.nesterov)
    return RecipeComplaint{"nesterov", "rmsprop_warm_up has no nesterov: take sgd or lars"};
  if (recipe.rate_place == LearningRateMode::Folded) {
    return RecipeComplaint{"rate_place",
                           "rmsprop_warm_up has the rate outside the velocity: take sgd or lars"};
  }
  if (recipe.sparsity > 0) {
    return RecipeComplaint{"sparsity",
                           "rmsprop_warm_up needs all gradients at every step: take sgd or lars, "
                           "or sparsity 0"};
  }
  if (recipe.rate == 0)
    return RecipeComplaint{"rate", "rmsprop_warm_up divides by the rate, which must not be 0"};
  if (recipe.warm_up_epochs > 0 && recipe.warm_up_from == 0) {
    return RecipeComplaint{"warm_up_from",
                           "rmsprop_warm_up divides by the rate: warm_up_from must not be 0"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<RecipeComplaint> check_recipe(const Recipe& recipe) {
  const Result<ModelTable> table = model_table(recipe.model, {.image = recipe.image});
  if (!table.ok()) return RecipeComplaint{"image", table.status().message()};
  const int grouped = std::accumulate(recipe.groups.begin(), recipe.groups.end(), 0);
  if (const int gradients = table.value().gradient_tensors(); grouped > 0 && grouped != gradients) {
    return RecipeComplaint{
        "groups",
        base::format("groups has {} gradients, but {} has {}: take others, or [] for theta",
                     grouped, recipe.model, gradients)};
  }
  if (recipe.augmentation == AugmentationKind::Shift && recipe.padding >= recipe.image) {
    return RecipeComplaint{
        "padding",
        base::format("padding {} moves an image of {}x{} out of sight: take less than {}",
                     recipe.padding, recipe.image, recipe.image, recipe.image)};
  }
  if (recipe.nesterov && recipe.momentum == 0)
    return RecipeComplaint{"nesterov", "nesterov looks momentum ahead, and momentum is 0"};
  if (recipe.optimizer == OptimizerKind::Lars && recipe.decay_one_dimensional) {
    return RecipeComplaint{"decay_one_dimensional",
                           "lars never decays biases and batch norms: decay_one_dimensional must "
                           "be false"};
  }
  if (recipe.optimizer == OptimizerKind::RmspropWarmUp) return check_rmsprop(recipe);
  return std::nullopt;
}

}  // namespace sluice::recipe
