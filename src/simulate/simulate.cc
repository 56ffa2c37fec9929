#include "sluice/analysis/simulate.h"

#include "base/format.h"
#include "simulate/training.h"

namespace sluice {
namespace {

Result<simulate::ClusterScenario> scenario_of(const std::string& cluster, int ranks,
                                              const std::vector<std::string>& what_if,
                                              bool with_recipe) {
  if (ranks < 1 || ranks > simulate::kMostRanks) {
    return Status{Code::InvalidArgument,
                  base::format("ranks must be from 1 to {}, not {}", simulate::kMostRanks, ranks)};
  }
  Result<cluster::Cluster> found = cluster::find_cluster(cluster);
  if (!found.ok()) return found.status();
  simulate::ClusterScenario scenario{.cluster = std::move(found).value()};
  if (Status status = simulate::apply(scenario, what_if, with_recipe); !status.ok()) return status;
  return scenario;
}

}  // namespace

Result<SimulatedTraining> simulate_training(const TrainingSimulation& training) {
  Result<simulate::ClusterScenario> scenario =
      scenario_of(training.cluster, training.ranks, training.what_if, true);
  if (!scenario.ok()) return scenario.status();
  Result<recipe::Recipe> recipe = recipe::load_recipe(training.recipe, scenario.value().recipe);
  if (!recipe.ok()) return recipe.status();
  const Result<simulate::TrainingTime> simulated =
      simulate::simulate_training({.scenario = std::move(scenario).value(),
                                   .recipe = std::move(recipe).value(),
                                   .framework = training.framework,
                                   .ranks = training.ranks});
  if (!simulated.ok()) return simulated.status();
  const simulate::TrainingTime& time = simulated.value();
  return SimulatedTraining{.iteration_s = time.iteration.seconds,
                           .images_per_s = time.images_per_s,
                           .speedup = time.speedup,
                           .efficiency = time.efficiency,
                           .exposed_comm_fraction = time.exposed_comm_fraction,
                           .time_to_train_s = time.time_to_train_s};
}

Result<std::vector<SimulatedAllReduce>> simulate_all_reduce(const AllReduceSimulation& all_reduce) {
  if (all_reduce.bytes < 1) {
    return Status{Code::InvalidArgument,
                  base::format("bytes must be at least 1, not {}", all_reduce.bytes)};
  }
  const Result<simulate::ClusterScenario> scenario =
      scenario_of(all_reduce.cluster, all_reduce.ranks, all_reduce.what_if, false);
  if (!scenario.ok()) return scenario.status();
  const Result<std::vector<simulate::AllReduceTime>> times = simulate::simulate_all_reduce(
      scenario.value(), all_reduce.ranks, {.bytes = all_reduce.bytes, .algorithm = "all"});
  if (!times.ok()) return times.status();
  std::vector<SimulatedAllReduce> results;
  for (const simulate::AllReduceTime& time : times.value())
    results.push_back({std::string{time.candidate.algorithm->name}, time.seconds});
  return results;
}

}  // namespace sluice
