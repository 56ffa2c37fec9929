// initial_weights.h - weights that a training starts from instead of its seed's.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sluice/status.h"
#include "train/models/models.h"

namespace sluice {

// From a file that torch::save() wrote for a module with the same names. The classifier keeps its
// own weights where the file's has another number of classes. Returns what the user should know;
// a file that does not fit is refused with the first tensor that does not.
Result<std::vector<std::string>> take_weights(const std::filesystem::path& path, Model& network);

}  // namespace sluice
