// simulate_training.h - `sluice simulate --recipe`: a whole training, on ever more ranks.
#pragma once

#include <string>
#include <vector>

#include "simulate/training.h"

namespace sluice::cli {

// Prints a table or a JSON document, one row for each number of ranks. Throws Error.
void simulate_trainings(TrainingQuestion question, const std::vector<int>& ranks, bool json);

}  // namespace sluice::cli
