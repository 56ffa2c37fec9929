// recipe_check.h - what settings of a recipe cannot be together.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "recipe/recipe.h"

namespace sluice::recipe {

struct RecipeComplaint {
  std::string_view key;  // which to change
  std::string what;      // a sentence
};

// Of values that are each within their own bounds.
std::optional<RecipeComplaint> check_recipe(const Recipe& recipe);

}  // namespace sluice::recipe
