// recipe_keys.h - the keys of a recipe: one table that reading, writing and the document share.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "recipe/recipe.h"
#include "sluice/status.h"

namespace sluice::recipe {

struct NumberKey {
  double Recipe::*field;
  double least;
  double most;
};
struct WholeKey {
  std::variant<int Recipe::*, std::int64_t Recipe::*, std::uint64_t Recipe::*> field;
  std::int64_t least;
  std::int64_t most;
};
// Also as a text with a unit: "4M".
struct BytesKey {
  std::size_t Recipe::*field;
  std::int64_t least;
  std::int64_t most;
};
struct SwitchKey {
  bool Recipe::*field;
};
struct TextKey {
  std::string Recipe::*field;
  Status (*check)(const std::string& text);  // null: anything
};
// One of some words; an enum's values in their order.
struct WordKey {
  std::span<const std::string_view> words;
  std::size_t (*value)(const Recipe& recipe);
  void (*set)(Recipe& recipe, std::size_t value);
};
// [least, most]
struct IntervalKey {
  Interval Recipe::*field;
  double least;
  double most;
};
// [3, 21, 57, 80]
struct CountsKey {
  std::vector<int> Recipe::*field;
};
// [[30, 0.1], [60, 0.01]]: at which epoch what, in order of epochs.
using EpochPair = std::array<double, 2>;
struct EpochPairsKey {
  std::string_view what;  // the second of a pair
  bool whole;             // both are whole numbers
  EpochPair least;
  EpochPair most;
  std::vector<EpochPair> (*value)(const Recipe& recipe);
  void (*set)(Recipe& recipe, const std::vector<EpochPair>& pairs);
};

struct RecipeKey {
  std::string_view name;
  std::string_view about;  // for docs/recipes.md
  std::variant<NumberKey, WholeKey, BytesKey, SwitchKey, TextKey, WordKey, IntervalKey, CountsKey,
               EpochPairsKey>
      kind;
  bool required = false;
  bool resumable = false;  // another value does not change the steps already taken
};

// In the order of the document.
std::span<const RecipeKey> recipe_keys();

// The one of that name, or null.
const RecipeKey* find_recipe_key(std::string_view name);

// " did you mean ...?" or nothing.
std::string nearest_key_hint(std::string_view name);

}  // namespace sluice::recipe
