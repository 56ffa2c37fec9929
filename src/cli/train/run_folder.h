// run_folder.h - where a training keeps what it writes, and that none is written over.
#pragma once

#include <ctime>
#include <filesystem>
#include <string>

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

}  // namespace sluice::cli
