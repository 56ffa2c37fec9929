// resumption.h - what a training starts from: a checkpoint of the same run, or weights of another.
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

// The state of a training after `step` steps; the caller adds accuracies.
TrainingState state_at(std::int64_t step, const recipe::Recipe& recipe,
                       const recipe::EpochTable& plan, const data::Data& data);

// The recipe of the resumed run: it keeps its global batch on another number of ranks. Settings or
// data that would have changed the steps already taken are errors that name them.
Result<recipe::Recipe> resumed_recipe(const TrainingState& then, const recipe::Recipe& now,
                                      const data::Data& data);

// The model of a checkpoint, built from its settings, with its weights and the mean over ranks of
// its running statistics.
struct StoredModel {
  std::shared_ptr<Model> network;
  recipe::Recipe recipe;
  std::int64_t step = 0;
  double epoch = 0;
};
// `path` is a checkpoint, or the folder of a run: then its newest valid checkpoint is read.
Result<StoredModel> stored_model(const std::filesystem::path& path);

// Copies weights from a checkpoint, or from a file that torch::save() wrote for a module with the
// same names. The classifier keeps its own weights if the number of classes differs. Returns notes
// for the user. An error names the first tensor that does not fit.
Result<std::vector<std::string>> take_weights(const std::filesystem::path& path, Model& network);

}  // namespace sluice::train
