// recipe_keys.h - the keys of a recipe, in one table for reading, writing and docs/recipes.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/toml.h"
#include "recipe/recipe.h"
#include "sluice/status.h"

namespace sluice::recipe {

struct NumberKey {
  double Recipe::*field;
  double least;
  double most;
};
struct IntegerKey {
  std::variant<int Recipe::*, std::int64_t Recipe::*, std::uint64_t Recipe::*> field;
  std::int64_t least;
  std::int64_t most;
};
// An integer, or a text with a unit: "4M".
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
  Status (*check)(const std::string& text);  // null: any text is valid
};
// One of `words`. They stand for the values of an enum, in its order.
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
// [[30, 0.1], [60, 0.01]]: pairs of an epoch and a value, in order of epochs.
using EpochPair = std::array<double, 2>;
struct EpochPairsKey {
  std::string_view what;  // name of the second number
  bool whole;             // both must be whole numbers
  EpochPair least;
  EpochPair most;
  std::vector<EpochPair> (*value)(const Recipe& recipe);
  void (*set)(Recipe& recipe, const std::vector<EpochPair>& pairs);
};

struct RecipeKey {
  std::string_view name;
  std::string_view about;  // for docs/recipes.md
  std::variant<NumberKey, IntegerKey, BytesKey, SwitchKey, TextKey, WordKey, IntervalKey, CountsKey,
               EpochPairsKey>
      kind;
  bool required = false;
  bool resumable = false;  // a resumed training may change it
};

// In the order of docs/recipes.md.
std::span<const RecipeKey> recipe_keys();

// The key of that name, or null.
const RecipeKey* find_recipe_key(std::string_view name);

// ", did you mean ...?", or "" if no key is near.
std::string nearest_key_hint(std::string_view name);

// Sets a key from TOML. An error names the key and its valid values, but not the file or the line.
Status set_value(Recipe& recipe, const RecipeKey& key, const toml::node& node);

// The value as TOML text; set_value() reads it back exactly.
std::string show_value(const Recipe& recipe, const RecipeKey& key);

}  // namespace sluice::recipe
