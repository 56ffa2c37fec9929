// run_folder.h - the folder of a run: a fresh one for each run, and the settings in its run.json.
#pragma once

#include <ctime>
#include <filesystem>
#include <span>
#include <string>

#include "recipe/recipe.h"
#include "sluice/status.h"

namespace sluice::cli {

// Whether a training has written to this folder.
bool holds_a_run(const std::filesystem::path& folder);

// Creates a new, empty folder PARENT/runs/NAME-YYYYMMDD-HHMMSS. Appends -2, -3, ... if the name is
// taken; two processes never get the same folder.
Result<std::filesystem::path> fresh_run_folder(const std::filesystem::path& parent,
                                               const std::string& name, std::time_t now);

// Fails if a new training would overwrite a run, or if there is no run to resume.
Status check_run_folder(const std::filesystem::path& folder, bool resume);

// The run under PARENT/runs that was modified last; empty if there is none.
std::filesystem::path newest_run(const std::filesystem::path& parent);

struct RecordedRun {
  recipe::Recipe recipe;
  std::string data;
};

// Reads the folder's run.json and applies `overrides` ("key=value" each) to its recipe.
Result<RecordedRun> recorded_run(const std::filesystem::path& folder,
                                 std::span<const std::string> overrides);

// The data that a run was trained on, given its folder or one of its checkpoints. Throws Error if
// there is no run.json near it.
std::string data_of_checkpoint(const std::filesystem::path& checkpoint);

}  // namespace sluice::cli
