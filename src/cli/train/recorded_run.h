// recorded_run.h - what a run's folder says of how it was begun.
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "recipe/recipe.h"
#include "sluice/status.h"

namespace sluice::cli {

struct RecordedRun {
  recipe::Recipe recipe;
  std::string data;
};

// Of the folder's run.json; `overrides`, "key=value" each, on top of its recipe.
Result<RecordedRun> recorded_run(const std::filesystem::path& folder,
                                 std::span<const std::string> overrides);

// The data that the run was trained with which a checkpoint, or a run's folder, belongs to; Error
// where there is no run.json near it.
std::string data_of_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace sluice::cli
