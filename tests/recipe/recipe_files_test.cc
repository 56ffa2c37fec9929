// The recipes of recipes/ and the document that lists keys and recipes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/format.h"
#include "base/toml.h"
#include "recipe/epoch_table.h"
#include "recipe/learning_rate.h"
#include "recipe/recipe.h"
#include "recipe/recipe_keys.h"

namespace sluice::recipe {
namespace {

constexpr std::int64_t kImageNet = 1281167;

std::string text_of(const std::string& path) {
  std::ifstream file{path};
  return {std::istreambuf_iterator<char>{file}, {}};
}

TEST(RecipeFiles, EveryFileOfTheFolderIsBuiltIn) {
  std::set<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator{SLUICE_SOURCE_DIR "/recipes"}) {
    const Result<Recipe> recipe = load_recipe(entry.path().stem().string());
    ASSERT_TRUE(recipe.ok()) << recipe.status().message();
    EXPECT_EQ(recipe.value().name, entry.path().stem());
    EXPECT_FALSE(recipe.value().about.empty());
    EXPECT_TRUE(load_recipe(entry.path().string()).ok()) << "and can be read from its path";
    files.insert(entry.path().stem());
  }
  std::set<std::string> known;
  for (const RecipeSummary& recipe : known_recipes()) known.insert(recipe.name);
  EXPECT_EQ(known, files);
}

TEST(RecipeFiles, EveryConstantOfAPublishedRunHasItsTag) {
  const std::set<std::string_view> own{"demo", "mnist", "cifar10"};
  for (const RecipeSummary& summary : known_recipes()) {
    if (own.contains(summary.name)) continue;
    const Recipe recipe = load_recipe(summary.name).value();
    for (const RecipeKey& key : recipe_keys()) {
      if (key.name == "name" || key.name == "about") continue;
      EXPECT_NE(source_of(recipe, key.name), "") << summary.name << " " << key.name;
    }
  }
}

TEST(RecipeFiles, EverySettingCanBeGivenAsAnOverride) {
  for (const RecipeSummary& summary : known_recipes()) {
    const Recipe recipe = load_recipe(summary.name).value();
    std::vector<std::string> overrides;
    for (const auto& [key, value] : settings_of(recipe)) {
      overrides.push_back(key);
      overrides.back() += "=" + value;
    }
    const Result<Recipe> again = load_recipe("demo", overrides);
    ASSERT_TRUE(again.ok()) << summary.name << ": " << again.status().message();
    EXPECT_EQ(settings_of(again.value()), settings_of(recipe)) << summary.name;
  }
}

struct Published {
  const char* recipe;
  int ranks;
  std::int64_t batch;       // first global batch
  std::int64_t last_batch;  // last global batch
  std::int64_t steps;       // of the training, counted by hand
};

TEST(RecipeFiles, PublishedRunsHaveTheirBatchesAndSteps) {
  const auto steps = [](double epochs, std::int64_t batch) {
    return static_cast<std::int64_t>(epochs) * (kImageNet / batch);
  };
  const Published runs[] = {
      {"facebook-1h", 256, 8192, 8192, steps(90, 8192)},
      {"google-30min", 256, 8192, 16384, steps(30, 8192) + steps(60, 16384)},
      {"chainermn-cloud", 32, 2048, 4096, steps(30, 2048) + steps(60, 4096)},
      {"pfn-15min", 1024, 32768, 32768, 3519},
      {"tencent-6.6min", 2048, 65536, 65536, steps(90, 65536)},
      {"sony-224s", 2176, 34816, 69632, steps(30, 34816) + steps(60, 69632)},
      {"sony-122s", 3456, 55296, 55296, steps(90, 55296)},
      {"google-tpu", 1024, 32768, 32768, steps(90, 32768)},
      {"gradientflow-alexnet", 512, 65536, 65536, steps(95, 65536)},
      {"alexnet-mpi-baseline", 64, 8192, 8192, steps(95, 8192)},
      {"fujitsu-74s", 2048, 81920, 81920, 90 * 16},
      {"fujitsu-mlperf-70s", 2048, 86016, 86016, 1350},
      {"huawei-59.8s", 1024, 65536, 65536, steps(90, 65536)},
  };
  for (const Published& run : runs) {
    const Recipe recipe = load_recipe(run.recipe).value();
    const EpochTable table = make_epoch_table(recipe, run.ranks, kImageNet).value();
    EXPECT_EQ(table.epochs.front().global_batch, run.batch) << run.recipe;
    EXPECT_EQ(table.epochs.back().global_batch, run.last_batch) << run.recipe;
    EXPECT_EQ(table.steps, run.steps) << run.recipe;
  }
}

TEST(RecipeFiles, FacebooksRateRisesToThreePointTwoAndFallsByTens) {
  const Recipe recipe = load_recipe("facebook-1h").value();
  const EpochTable table = make_epoch_table(recipe, 256, kImageNet).value();
  const int epoch = 156;  // steps
  EXPECT_NEAR(learning_rate_at(recipe, table, 0), 0.1, 1e-12);
  EXPECT_NEAR(learning_rate_at(recipe, table, 5 * epoch / 2), (0.1 + 3.2) / 2, 1e-12);
  EXPECT_NEAR(learning_rate_at(recipe, table, 5 * epoch), 3.2, 1e-12);
  EXPECT_NEAR(learning_rate_at(recipe, table, 30 * epoch - 1), 3.2, 1e-12);
  EXPECT_NEAR(learning_rate_at(recipe, table, 30 * epoch), 0.32, 1e-12);
  EXPECT_NEAR(learning_rate_at(recipe, table, 60 * epoch), 0.032, 1e-12);
  EXPECT_NEAR(learning_rate_at(recipe, table, 90 * epoch - 1), 0.0032, 1e-12);
}

TEST(RecipeFiles, PfnStartsSlowly) {
  const Recipe recipe = load_recipe("pfn-15min").value();
  const EpochTable table = make_epoch_table(recipe, 1024, kImageNet).value();
  for (std::int64_t step = 0; step < table.steps; ++step) {
    const double epoch = static_cast<double>(step) * 32768 / kImageNet;
    double of_base = 0.5;
    if (epoch >= 40) of_base = 0.075;
    if (epoch >= 70) of_base = 0.01;
    if (epoch >= 85) of_base = 0.001;
    ASSERT_NEAR(learning_rate_at(recipe, table, step), of_base * 12.8, 1e-12) << step;
  }
}

TEST(RecipeFiles, FujitsusRateIsThatOfTheirProgram) {
  const Recipe recipe = load_recipe("fujitsu-mlperf-70s").value();
  const EpochTable table = make_epoch_table(recipe, 2048, kImageNet).value();
  int evaluations = 0;
  for (int step = 0; step < 1350; ++step) {
    const double p = std::min(step - 540, 780) / 780.0;
    const double expected =
        step < 540 ? 13 * step / 540.0 : 13 * ((1 - 0.0025) * std::pow(1 - p, 2.2) + 0.0025);
    ASSERT_NEAR(learning_rate_at(recipe, table, step), expected, 1e-11) << step;
    if (!evaluates_after(recipe, table, step)) continue;
    ++evaluations;
    EXPECT_EQ((step + 1) % 15, 0);
    EXPECT_EQ((step + 1) / 15 % 4, 2);
  }
  EXPECT_EQ(evaluations, 23);
}

// docs/recipes.md contains the table of keys and the list of recipes.
TEST(RecipeFiles, TheDocumentHasEveryKeyAndRecipe) {
  const std::string document = text_of(SLUICE_SOURCE_DIR "/docs/recipes.md");
  std::string keys;
  for (const RecipeKey& key : recipe_keys()) {
    keys += base::format("| `{}` | {} | {} |\n", key.name,
                         key.required ? "" : base::format("`{}`", show_value(Recipe{}, key)),
                         key.about);
  }
  EXPECT_NE(document.find(keys), std::string::npos) << "docs/recipes.md should have:\n" << keys;
  std::string recipes;
  for (const RecipeSummary& recipe : known_recipes())
    recipes += base::format("| `{}` | {} |\n", recipe.name, recipe.about);
  EXPECT_NE(document.find(recipes), std::string::npos) << "docs/recipes.md should have:\n"
                                                       << recipes;
}

}  // namespace
}  // namespace sluice::recipe
