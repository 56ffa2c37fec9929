// resumption.h - what a checkpoint says besides weights, and whether a run may go on from it.
#pragma once

#include <cstdint>

#include "data/data.h"
#include "recipe/epoch_table.h"
#include "recipe/models.h"
#include "recipe/recipe.h"
#include "sluice/status.h"
#include "train/checkpoint/checkpoint.h"

namespace sluice::train {

// Of a training after `step` steps; accuracies are the caller's to add.
TrainingState state_at(std::int64_t step, const recipe::Recipe& recipe,
                       const recipe::EpochTable& plan, const data::Data& data);

// The recipe that goes on: the global batch stays what it was on another number of ranks. Settings
// or data that would have changed the steps already taken are refused by name.
Result<recipe::Recipe> resumed_recipe(const TrainingState& then, const recipe::Recipe& now,
                                      const data::Data& data);

// What the network of a checkpoint takes and tells apart.
recipe::ModelInput stored_input(const TrainingState& state, const recipe::Recipe& recipe);
// How far it was.
double stored_epoch(const TrainingState& state);

}  // namespace sluice::train
