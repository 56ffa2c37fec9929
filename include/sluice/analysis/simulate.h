// simulate.h - how long a training or an all_reduce would take on a cluster of any size.
//
//   const auto training = sluice::simulate_training(
//       {.cluster = "abci", .recipe = "fujitsu-74s", .framework = "mxnet", .ranks = 2048});
//   std::printf("%.1f s\n", training.value().time_to_train_s);
//
// Everything here is simulated; docs/simulation.md describes the model and its limits. The results
// equal those of `sluice simulate`. An unknown name or an invalid value is an error. Link with
// sluice::simulate. Thread-safety: pure functions.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/status.h"
#include "sluice/version.h"

namespace sluice {

struct TrainingSimulation {
  std::string cluster;    // name of a built-in cluster, or path of a file
  std::string recipe;     // name of a built-in recipe, or path of a file
  std::string framework;  // empty: the cluster's only framework with a speed for the recipe
  int ranks = 1;
  std::vector<std::string> what_if;  // changes as in `sluice simulate --what-if`: "wire=f16"
};

struct SimulatedTraining {
  double iteration_s = 0;  // a step of the last epoch
  double images_per_s = 0;
  double speedup = 0;                // over a single rank
  double efficiency = 0;             // speedup / ranks
  double exposed_comm_fraction = 0;  // part of a step that waits for communication
  double time_to_train_s = 0;
};

SLUICE_API Result<SimulatedTraining> simulate_training(const TrainingSimulation& training);

struct AllReduceSimulation {
  std::string cluster;  // name of a built-in cluster, or path of a file
  int ranks = 1;
  std::int64_t bytes = 0;
  std::vector<std::string> what_if;  // changes of the cluster: "between.gbit_per_s=400"
};

struct SimulatedAllReduce {
  std::string algorithm;
  double seconds = 0;
};

// One result for each algorithm that the cluster can run, the fastest first.
SLUICE_API Result<std::vector<SimulatedAllReduce>> simulate_all_reduce(
    const AllReduceSimulation& all_reduce);

}  // namespace sluice
