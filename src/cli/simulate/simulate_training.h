// simulate_training.h - `sluice simulate --recipe`: a whole training, on ever more ranks.
#pragma once

#include <string>
#include <vector>

#include "simulate/training.h"

namespace sluice::cli {

struct TrainingSweep {
  simulate::TrainingQuestion question;  // but for its ranks
  std::vector<int> ranks;               // rising
  bool strong = false;                  // the global batch stays, not a rank's
  std::string plot;                     // files to write; empty: none
  std::string trace;                    // of a step on the most ranks
  bool json = false;
};

// Prints a table or a JSON document, one row for each number of ranks. Throws Error.
void simulate_trainings(TrainingSweep sweep);

}  // namespace sluice::cli
