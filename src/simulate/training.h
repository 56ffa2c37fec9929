// training.h - a recipe on a cluster: what a step takes, how well it scales, how long it trains.
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
  std::string framework;  // empty: the only one that the cluster has a speed for
  int ranks = 1;
  std::int64_t samples = kImageNetSamples;
};

// What the cluster has for it.
Result<cluster::DeviceSpeed> speed_of(const TrainingQuestion& question);

// All simulated. A step is one of the last epoch, whose batch and sparsity are the final ones.
struct TrainingTime {
  IterationTime iteration;
  std::int64_t global_batch = 0;
  double images_per_s = 0;
  // Against one rank by itself: with the batch of one of these ranks, or where the recipe has a
  // global batch with all of that.
  double speedup = 0;
  double efficiency = 0;  // speedup / ranks
  double exposed_comm_fraction = 0;
  double steps_s = 0;     // of all epochs
  double overhead_s = 0;  // start-up, evaluation, first epochs
  double time_to_train_s = 0;
  std::int64_t steps = 0;
};

// One training whose devices may be tried at several speeds: collectives are simulated once.
// Thread-safety: one thread at a time.
class TrainingSimulator {
 public:
  static Result<TrainingSimulator> of(const TrainingQuestion& question);

  const cluster::DeviceSpeed& speed() const { return speed_; }
  Spread spread() const { return spread_of(question_.world); }

  // An efficiency above 1 is refused.
  Result<TrainingTime> time(const cluster::DeviceSpeed& speed, const Spread& spread);

 private:
  TrainingSimulator(TrainingQuestion question, cluster::DeviceSpeed speed, recipe::EpochTable plan,
                    IterationSimulator iterations);
  double overhead_of(const cluster::DeviceSpeed& speed) const;
  double alone_s(const cluster::DeviceSpeed& speed) const;

  TrainingQuestion question_;
  cluster::DeviceSpeed speed_;
  recipe::EpochTable plan_;
  IterationSimulator iterations_;
};

// With the cluster's own speed and spread.
Result<TrainingTime> simulate_training(const TrainingQuestion& question);

}  // namespace sluice::simulate
