// training.h - a recipe on a cluster: what a step takes, how well it scales, how long it trains.
#pragma once

#include <string>

#include "plan/recipe.h"
#include "simulate/iteration.h"

namespace sluice {

inline constexpr std::int64_t kImageNetSamples = 1281167;

struct TrainingQuestion {
  WhatIf world;
  Recipe recipe;
  std::string framework;  // empty: the only one that the cluster has a speed for
  int ranks = 1;
  std::int64_t samples = kImageNetSamples;
};

// All simulated. A step is one of the last epoch, whose batch and sparsity are the final ones.
struct TrainingTime {
  IterationTime iteration;
  std::int64_t global_batch = 0;
  double images_per_s = 0;
  double efficiency = 0;  // against a rank by itself with the same batch
  double speedup = 0;
  double exposed_comm_fraction = 0;
  double steps_s = 0;     // of all epochs
  double overhead_s = 0;  // start-up, evaluation, first epochs
  double time_to_train_s = 0;
  std::int64_t steps = 0;
};

// An efficiency above 1 is refused.
Result<TrainingTime> simulate_training(const TrainingQuestion& question);

}  // namespace sluice
