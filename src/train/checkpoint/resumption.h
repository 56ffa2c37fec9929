// resumption.h - starts a training from a checkpoint of its run, or from the weights of another.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "data/data.h"
#include "recipe/epoch_table.h"
#include "recipe/models.h"
#include "recipe/recipe.h"
#include "sluice/status.h"
#include "train/checkpoint/checkpoint.h"
#include "train/models/models.h"

namespace sluice::train {

// Returns the state of a training after `step` steps; the caller adds the accuracies.
TrainingState state_at(std::int64_t step, const recipe::Recipe& recipe,
                       const recipe::EpochTable& epoch_table, const data::Data& data);

// Returns the recipe of the resumed run, which keeps its global batch on another number of ranks.
// If settings or data would have changed the steps already taken, an error names them.
Result<recipe::Recipe> resumed_recipe(const TrainingState& saved, const recipe::Recipe& now,
                                      const data::Data& data);

// The model of a checkpoint, built from its settings. It has the weights of the checkpoint, and the
// mean of its running statistics over the ranks.
struct StoredModel {
  std::shared_ptr<Model> network;
  recipe::Recipe recipe;
  std::int64_t step = 0;
  double epoch = 0;
};
// `path` is a checkpoint or a run folder. Of a run folder, the newest valid checkpoint is read.
Result<StoredModel> stored_model(const std::filesystem::path& path);

// Copies weights into `network` from a checkpoint, or from a file that torch::save() wrote for a
// module with the same names. The classifier keeps its own weights if the number of classes
// differs. Returns notes for the user. An error names the first tensor that does not fit.
Result<std::vector<std::string>> load_initial_weights(const std::filesystem::path& path,
                                                      Model& network);

}  // namespace sluice::train
