// initial_weights.h - weights that a training starts from instead of its seed's.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "recipe/recipe.h"
#include "sluice/status.h"
#include "train/models/models.h"

namespace sluice::train {

// From a checkpoint, or from a file that torch::save() wrote for a module with the same names. The
// classifier keeps its own weights where theirs has another number of classes. Returns what the
// user should know; what does not fit is refused with the first tensor that does not.
Result<std::vector<std::string>> take_weights(const std::filesystem::path& path, Model& network);

// Where a run keeps its checkpoints, in its folder.
inline constexpr const char* kCheckpoints = "checkpoints";

// The network of a checkpoint, made as its settings say, with its weights and the mean over ranks
// of its running statistics.
struct StoredModel {
  std::shared_ptr<Model> network;
  recipe::Recipe recipe;
  std::int64_t step = 0;
  double epoch = 0;
};
// `path`: of a checkpoint, or of a run: then of its newest good one.
Result<StoredModel> stored_model(const std::filesystem::path& path);

}  // namespace sluice::train
