// train_rank.h - one rank of `sluice train`: trains, shows how far it is, says what it came to.
#pragma once

#include "cli/train/train_options.h"

namespace sluice::cli {

// Returns the exit status. Rank 0 prints the result; the others are silent unless they fail.
int run_train_rank(const TrainOptions& options);

}  // namespace sluice::cli
