// resumption.h - what a checkpoint says besides weights, and whether a run may go on from it.
#pragma once

#include <cstdint>

#include "data/data.h"
#include "recipe/models.h"
#include "recipe/recipe.h"
#include "recipe/training_plan.h"
#include "sluice/status.h"
#include "train/checkpoint/checkpoint.h"

namespace sluice {

// Of a training after `step` steps; accuracies are the caller's to add.
TrainingState state_at(std::int64_t step, const Recipe& recipe, const TrainingPlan& plan,
                       const Data& data);

// The recipe that goes on: the global batch stays what it was on another number of ranks. Settings
// or data that would have changed the steps already taken are refused by name.
Result<Recipe> resumed_recipe(const TrainingState& then, const Recipe& now, const Data& data);

// What the network of a checkpoint takes and tells apart.
ModelInput stored_input(const TrainingState& state, const Recipe& recipe);
// How far it was.
double stored_epoch(const TrainingState& state);

}  // namespace sluice
