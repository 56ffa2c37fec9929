// training.h - a recipe on a cluster: the time of a step, the scaling, the time to train.
#pragma once

#include <string>

#include "cluster/device_speed.h"
#include "recipe/epoch_table.h"
#include "recipe/recipe.h"
#include "simulate/iteration.h"

namespace sluice::simulate {

inline constexpr std::int64_t kImageNetSamples = 1281167;

struct TrainingInput {
  ClusterScenario scenario;
  recipe::Recipe recipe;
  std::string framework;  // empty: the only framework with a matching speed
  int ranks = 1;
  std::int64_t samples = kImageNetSamples;
};

// The speed in the cluster's file that fits the training.
Result<cluster::DeviceSpeed> speed_of(const TrainingInput& input);

// All values are simulated. `iteration` is a step of the last epoch, with the final batch and
// sparsity.
struct TrainingTime {
  IterationTime iteration;
  std::int64_t global_batch = 0;
  double images_per_s = 0;
  // Relative to a single rank. It has the batch of one of these ranks or, if the recipe has a
  // global batch, all of it.
  double speedup = 0;
  double efficiency = 0;  // speedup / ranks
  double exposed_comm_fraction = 0;
  double steps_s = 0;     // of all epochs
  double overhead_s = 0;  // start-up, evaluations, first epochs
  double time_to_train_s = 0;
  std::int64_t steps = 0;
};

// Simulates one training with any speed of its devices. Collectives are simulated only once.
// Thread-safety: one thread at a time.
class TrainingSimulator {
 public:
  static Result<TrainingSimulator> of(const TrainingInput& input);

  const cluster::DeviceSpeed& speed() const { return speed_; }
  Spread spread() const { return spread_of(input_.scenario); }

  // Fails if the efficiency is above 1.
  Result<TrainingTime> time(const cluster::DeviceSpeed& speed, const Spread& spread);

 private:
  TrainingSimulator(TrainingInput input, cluster::DeviceSpeed speed, recipe::EpochTable table,
                    IterationSimulator iterations);
  double overhead_of(const cluster::DeviceSpeed& speed) const;
  double single_rank_s(const cluster::DeviceSpeed& speed) const;

  TrainingInput input_;
  cluster::DeviceSpeed speed_;
  recipe::EpochTable table_;
  IterationSimulator iterations_;
};

// A speed-up above the number of ranks is impossible.
Status check_efficiency(int ranks, double efficiency);

// Simulates a training with the speed and spread of its cluster.
Result<TrainingTime> simulate_training(const TrainingInput& input);

}  // namespace sluice::simulate
