// run_folder.h - a run's folder: a fresh one for each run, and what its run.json recorded.
#pragma once

#include <ctime>
#include <filesystem>
#include <span>
#include <string>

#include "recipe/recipe.h"
#include "sluice/status.h"

namespace sluice::cli {

// Whether a training has written there.
bool holds_a_run(const std::filesystem::path& folder);

// A new, empty folder runs/NAME-YYYYMMDD-HHMMSS under `place`, with -2, -3, ... where there is one
// already. It has been made, so nobody else gets it.
Result<std::filesystem::path> fresh_run_folder(const std::filesystem::path& place,
                                               const std::string& name, std::time_t now);

// A training that begins needs a folder that holds no run; one that goes on, a folder that does.
Status check_run_folder(const std::filesystem::path& folder, bool resume);

// The run under `place`/runs that was written last; empty: there is none.
std::filesystem::path newest_run(const std::filesystem::path& place);

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
