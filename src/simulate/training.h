// training.h - a recipe on a cluster: the time of a step, the scaling, the time to train.
#pragma once

#include <string>

#include "cluster/device_speed.h"
#include "recipe/epoch_table.h"
#include "recipe/recipe.h"
#include "simulate/iteration.h"

namespace sluice::simulate {

inline constexpr std::int64_t kImageNetSamples = 1281167;

struct TrainingQuestion {
  WhatIf world;
  recipe::Recipe recipe;
  std::string framework;  // empty: the only framework with a matching speed
  int ranks = 1;
  std::int64_t samples = kImageNetSamples;
};

// The cluster's speed for the training.
Result<cluster::DeviceSpeed> speed_of(const TrainingQuestion& question);

// All simulated. `iteration` is a step of the last epoch, with the final batch and sparsity.
struct TrainingTime {
  IterationTime iteration;
  std::int64_t global_batch = 0;
  double images_per_s = 0;
  // Against a single rank, with the batch of one of these ranks or, if the recipe has a global
  // batch, with all of it.
  double speedup = 0;
  double efficiency = 0;  // speedup / ranks
  double exposed_comm_fraction = 0;
  double steps_s = 0;     // of all epochs
  double overhead_s = 0;  // start-up, evaluations, first epochs
  double time_to_train_s = 0;
  std::int64_t steps = 0;
};

// One training with any speed of its devices. Collectives are simulated once.
// Thread-safety: one thread at a time.
class TrainingSimulator {
 public:
  static Result<TrainingSimulator> of(const TrainingQuestion& question);

  const cluster::DeviceSpeed& speed() const { return speed_; }
  Spread spread() const { return spread_of(question_.world); }

  // Fails if the efficiency is above 1.
  Result<TrainingTime> time(const cluster::DeviceSpeed& speed, const Spread& spread);

 private:
  TrainingSimulator(TrainingQuestion question, cluster::DeviceSpeed speed, recipe::EpochTable table,
                    IterationSimulator iterations);
  double overhead_of(const cluster::DeviceSpeed& speed) const;
  double alone_s(const cluster::DeviceSpeed& speed) const;

  TrainingQuestion question_;
  cluster::DeviceSpeed speed_;
  recipe::EpochTable table_;
  IterationSimulator iterations_;
};

// A speed-up above the number of ranks is impossible.
Status check_efficiency(int ranks, double efficiency);

// With the cluster's own speed and spread.
Result<TrainingTime> simulate_training(const TrainingQuestion& question);

}  // namespace sluice::simulate
