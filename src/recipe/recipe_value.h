// recipe_value.h - one setting of a recipe, from TOML and back.
#pragma once

#include <string>

#include "base/toml.h"
#include "recipe/recipe.h"
#include "recipe/recipe_keys.h"
#include "sluice/status.h"

namespace sluice::recipe {

// The message says what the key must be, not where it was found.
Status set_value(Recipe& recipe, const RecipeKey& key, const toml::node& node);

// As TOML text that set_value() reads back to the same value.
std::string show_value(const Recipe& recipe, const RecipeKey& key);

}  // namespace sluice::recipe
