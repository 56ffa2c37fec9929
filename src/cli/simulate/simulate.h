// simulate.h - `sluice simulate`: an all_reduce or a training on one or more numbers of ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "simulate/collective.h"
#include "simulate/training.h"

namespace sluice::cli {

struct AllReduceSweep {
  simulate::ClusterScenario scenario;
  std::vector<int> ranks;
  simulate::AllReduceOptions options;
  bool json = false;
};

// Prints a table or a JSON document, with a row for each number of ranks and algorithm. Throws
// Error.
void simulate_all_reduces(const AllReduceSweep& sweep);

struct TrainingSweep {
  simulate::TrainingInput input;  // except for its ranks
  std::vector<int> ranks;         // rising
  bool strong = false;            // all ranks share one global batch
  std::string plot;               // file for the scaling curve; empty: none
  std::string trace;              // file for a step on the most ranks; empty: none
  bool json = false;
};

// Prints a table or a JSON document, with a row for each number of ranks. Throws Error.
void simulate_trainings(TrainingSweep sweep);

}  // namespace sluice::cli
