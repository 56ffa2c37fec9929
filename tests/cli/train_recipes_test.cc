// Trains 20 steps of every recipe on small images in small batches: all its settings work together.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "recipe/recipe.h"
#include "tests/cli/shell.h"

namespace sluice::cli {
namespace {

TEST(TrainRecipes, EachRunsTwentySteps) {
  const TrainingFolder folder;
  for (const recipe::RecipeSummary& recipe : recipe::known_recipes()) {
    const Outcome outcome = folder.train(
        "--ranks 2 --data random:64 --set image=64 --set batch=2 --steps 20 --json "
        "--keep-nothing --recipe " +
        recipe.name);
    ASSERT_EQ(outcome.status, 0) << recipe.name << "\n" << outcome.err;
    const auto summary = nlohmann::json::parse(outcome.out);
    EXPECT_EQ(summary["steps"], 20) << recipe.name;
    EXPECT_TRUE(summary["loss"].is_number()) << recipe.name << " " << summary["loss"];
  }
}

}  // namespace
}  // namespace sluice::cli
