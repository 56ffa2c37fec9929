#include "simulate/training.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/training_plan.h"
#include "simulate/self_doubt.h"

namespace sluice {
namespace {

std::string_view precision_of(const Recipe& recipe) {
  switch (recipe.compute) {
    case Compute::F32:
      return "f32";
    case Compute::F16:
      return "f16";
    case Compute::BF16:
      return "bf16";
  }
  return "";
}

// Dense at first, then in even steps up to the recipe's.
double sparsity_at(const Recipe& recipe, double epoch) {
  if (epoch < recipe.sparse_dense_epochs) return 0;
  const double into = epoch - recipe.sparse_dense_epochs;
  if (into >= recipe.sparse_ramp_epochs) return recipe.sparsity;
  return recipe.sparsity * into / recipe.sparse_ramp_epochs;
}

double overhead_of(const DeviceSpeed& speed, const Recipe& recipe, const TrainingPlan& plan) {
  std::int64_t evaluations = 0;
  for (std::int64_t step = 0; step < plan.steps; ++step)
    evaluations += evaluates_after(recipe, plan, step) ? 1 : 0;
  return speed.startup_s + speed.first_epochs_s +
         speed.evaluation_s * static_cast<double>(evaluations) +
         speed.epoch_s * static_cast<double>(plan.epochs.size());
}

}  // namespace

Result<TrainingTime> simulate_training(const TrainingQuestion& question) {
  const Recipe& recipe = question.recipe;
  const Cluster& cluster = question.world.cluster;
  const Result<DeviceSpeed> speed = find_speed(cluster.speeds, question.framework,
                                               precision_of(recipe), recipe.model, cluster.name);
  if (!speed.ok()) return speed.status();
  const Result<TrainingPlan> plan = plan_training(recipe, question.ranks, question.samples);
  if (!plan.ok()) return plan.status();
  Result<IterationSimulator> simulator =
      IterationSimulator::of(question.world, recipe, speed.value(), question.ranks);
  if (!simulator.ok()) return simulator.status();

  TrainingTime time{.steps = plan.value().steps};
  std::map<std::tuple<int, int, double>, double> known;  // seconds of a step
  for (std::size_t e = 0; e < plan.value().epochs.size(); ++e) {
    const EpochPlan& epoch = plan.value().epochs[e];
    const double sparsity = sparsity_at(recipe, static_cast<double>(e));
    const std::tuple kind{epoch.batch, epoch.accumulate, sparsity};
    const bool last = e + 1 == plan.value().epochs.size();
    if (last || !known.contains(kind)) {
      Result<IterationTime> step =
          simulator.value().step({.batch = static_cast<double>(epoch.batch),
                                  .accumulate = epoch.accumulate,
                                  .sparsity = sparsity});
      if (!step.ok()) return step.status();
      known[kind] = step.value().seconds;
      if (last) time.iteration = std::move(step).value();
    }
    time.steps_s += known[kind] * static_cast<double>(epoch.steps);
    time.global_batch = epoch.global_batch;
  }
  const EpochPlan& end = plan.value().epochs.back();
  const double alone = speed.value().step_seconds(end.batch) * end.accumulate;
  time.images_per_s = static_cast<double>(time.global_batch) / time.iteration.seconds;
  time.efficiency = alone / time.iteration.seconds;
  time.speedup = time.efficiency * question.ranks;
  time.exposed_comm_fraction = time.iteration.exposed_s / time.iteration.seconds;
  time.overhead_s = overhead_of(speed.value(), recipe, plan.value());
  time.time_to_train_s = time.steps_s + time.overhead_s;
  if (Status status = check_efficiency(question.ranks, time.efficiency); !status.ok())
    return status;
  return time;
}

}  // namespace sluice
