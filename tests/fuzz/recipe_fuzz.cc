// For any bytes, the parser must return a recipe or an error of one sentence. A recipe that it has
// read must be written and read back unchanged, and its epoch table must be made or be an error.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>

#include "recipe/epoch_table.h"
#include "recipe/learning_rate.h"
#include "recipe/recipe.h"

namespace {

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "recipe_fuzz: %s\n", what);
  std::abort();
}

void check_epoch_table(const sluice::recipe::Recipe& recipe) {
  constexpr std::int64_t kSamples = 1000;
  for (const int ranks : {1, 3}) {
    const auto made = sluice::recipe::make_epoch_table(recipe, ranks, kSamples);
    if (!made.ok()) continue;
    const sluice::recipe::EpochTable& table = made.value();
    for (const std::int64_t step : {std::int64_t{0}, table.steps / 2, table.steps - 1}) {
      require(table.first_sample(step) >= 0, "a step before the first sample");
      require(table.epoch_at(step) <= recipe.epochs, "a step after the last epoch");
      require(sluice::recipe::learning_rate_at(recipe, table, step) >= 0,
              "a learning rate below 0 or NaN");
    }
    require(sluice::recipe::evaluates_after(recipe, table, table.steps - 1),
            "no evaluation at the end");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{data, data + size};
  // toml++ 3.3 reaches a point that it declares unreachable when it tests these bytes for blanks.
  if (std::any_of(text.begin(), text.end(), [](char c) { return c < 0; })) return 0;
  const sluice::Result<sluice::recipe::Recipe> recipe =
      sluice::recipe::parse_recipe(text, "fuzz.toml");
  if (!recipe.ok()) {
    require(recipe.status().code() == sluice::Code::InvalidInput, "a wrong code");
    require(recipe.status().message().starts_with("fuzz.toml"), "a message without a location");
    return 0;
  }
  const sluice::recipe::RecipeSettings settings = sluice::recipe::settings_of(recipe.value());
  const auto again = sluice::recipe::recipe_of({settings.begin(), settings.end()}, "again.toml");
  require(again.ok(), "a written recipe cannot be read");
  require(sluice::recipe::settings_of(again.value()) == settings,
          "a written recipe reads differently");
  require(sluice::recipe::may_resume({settings.begin(), settings.end()}, 0, recipe.value()).ok(),
          "a recipe cannot continue itself");
  check_epoch_table(recipe.value());
  return 0;
}
