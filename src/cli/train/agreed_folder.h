// agreed_folder.h - one run folder for ranks that nobody told of one.
#pragma once

#include <filesystem>
#include <string>

#include "sluice/communicator.h"

namespace sluice::cli {

// Rank 0 makes a fresh one, as fresh_run_folder() does, and tells the others. Every rank must call
// it; throws Error at all of them.
std::filesystem::path agreed_run_folder(Communicator& communicator, const std::string& name);

}  // namespace sluice::cli
