#include "simulate/training.h"

#include <map>
#include <tuple>

#include "base/format.h"

namespace sluice::simulate {
namespace {

std::string_view precision_of(const recipe::Recipe& recipe) {
  switch (recipe.compute) {
    case recipe::Compute::F32:
      return "f32";
    case recipe::Compute::F16:
      return "f16";
    case recipe::Compute::BF16:
      return "bf16";
  }
  return "";
}

// The sparsity is zero in the dense epochs, then rises linearly to that of the recipe.
double sparsity_at(const recipe::Recipe& recipe, double epoch) {
  if (epoch < recipe.sparse_dense_epochs) return 0;
  const double into = epoch - recipe.sparse_dense_epochs;
  if (into >= recipe.sparse_ramp_epochs) return recipe.sparsity;
  return recipe.sparsity * into / recipe.sparse_ramp_epochs;
}

// Counts the steps for which evaluates_after() is true, without visiting every step.
std::int64_t evaluations_of(const recipe::Recipe& recipe, const recipe::EpochTable& table) {
  std::int64_t count = 1;  // the last step
  if (recipe.evaluate_every == 0) return count;
  const double first = recipe.evaluate_first > 0 ? recipe.evaluate_first : recipe.evaluate_every;
  std::int64_t before = 0;
  for (int k = 0; first + k * recipe.evaluate_every < recipe.epochs; ++k) {
    const std::int64_t step = table.step_at(first + k * recipe.evaluate_every);
    if (step > before && step < table.steps) ++count;
    before = step;
  }
  return count;
}

IterationWork work_of(const recipe::EpochRow& epoch, const cluster::DeviceSpeed& speed,
                      double sparsity, const Spread& spread) {
  IterationWork work{.pass_s = speed.pass_seconds(epoch.batch),
                     .accumulate = epoch.accumulate,
                     .optimizer_s = speed.optimizer_s,
                     .sparsity = sparsity,
                     .spread = spread};
  if (speed.input_images_per_s > 0)
    work.input_s = epoch.batch * epoch.accumulate / speed.input_images_per_s;
  return work;
}

}  // namespace

Result<cluster::DeviceSpeed> speed_of(const TrainingInput& input) {
  const cluster::Cluster& cluster = input.scenario.cluster;
  return cluster::find_speed(cluster.speeds, input.framework, precision_of(input.recipe),
                             input.recipe.model, cluster.name);
}

TrainingSimulator::TrainingSimulator(TrainingInput input, cluster::DeviceSpeed speed,
                                     recipe::EpochTable table, IterationSimulator iterations)
    : input_{std::move(input)},
      speed_{std::move(speed)},
      table_{std::move(table)},
      iterations_{std::move(iterations)} {}

Result<TrainingSimulator> TrainingSimulator::of(const TrainingInput& input) {
  const recipe::Recipe& recipe = input.recipe;
  Result<cluster::DeviceSpeed> speed = speed_of(input);
  if (!speed.ok()) return speed.status();
  Result<recipe::EpochTable> table = recipe::make_epoch_table(recipe, input.ranks, input.samples);
  if (!table.ok()) return table.status();
  Result<IterationSimulator> iterations =
      IterationSimulator::of(input.scenario, recipe, input.ranks);
  if (!iterations.ok()) return iterations.status();
  return TrainingSimulator{input, std::move(speed).value(), std::move(table).value(),
                           std::move(iterations).value()};
}

double TrainingSimulator::overhead_of(const cluster::DeviceSpeed& speed) const {
  return speed.startup_s + speed.first_epochs_s +
         speed.evaluation_s * static_cast<double>(evaluations_of(input_.recipe, table_)) +
         speed.epoch_s * static_cast<double>(table_.epochs.size());
}

// The time of a single rank for one step: for the images of one rank, or for all of them if the
// recipe has a global batch.
double TrainingSimulator::single_rank_s(const cluster::DeviceSpeed& speed) const {
  const recipe::Recipe& recipe = input_.recipe;
  const recipe::EpochRow& end = table_.epochs.back();
  if (recipe.global_batch == 0) {
    return speed.pass_seconds(end.batch) * end.accumulate + speed.optimizer_s;
  }
  const int batch = recipe.batch_phases.empty() ? recipe.batch : recipe.batch_phases.back().batch;
  const double passes = static_cast<double>(end.global_batch) / batch;
  return speed.pass_seconds(batch) * passes + speed.optimizer_s;
}

Result<TrainingTime> TrainingSimulator::time(const cluster::DeviceSpeed& speed,
                                             const Spread& spread) {
  const recipe::Recipe& recipe = input_.recipe;
  TrainingTime time{.steps = table_.steps};
  std::map<std::tuple<int, int, double>, double> known;  // seconds of a step
  for (std::size_t e = 0; e < table_.epochs.size(); ++e) {
    const recipe::EpochRow& epoch = table_.epochs[e];
    const double sparsity = sparsity_at(recipe, static_cast<double>(e));
    const std::tuple key{epoch.batch, epoch.accumulate, sparsity};
    const bool last = e + 1 == table_.epochs.size();
    if (last || !known.contains(key)) {
      Result<IterationTime> step = iterations_.step(work_of(epoch, speed, sparsity, spread));
      if (!step.ok()) return step.status();
      known[key] = step.value().seconds;
      if (last) time.iteration = std::move(step).value();
    }
    time.steps_s += known[key] * static_cast<double>(epoch.steps);
    time.global_batch = epoch.global_batch;
  }
  const double ratio = single_rank_s(speed) / time.iteration.seconds;
  time.images_per_s = static_cast<double>(time.global_batch) / time.iteration.seconds;
  time.speedup = recipe.global_batch == 0 ? ratio * input_.ranks : ratio;
  time.efficiency = time.speedup / input_.ranks;
  time.exposed_comm_fraction = time.iteration.exposed_s / time.iteration.seconds;
  time.overhead_s = overhead_of(speed);
  time.time_to_train_s = time.steps_s + time.overhead_s;
  if (Status status = check_efficiency(input_.ranks, time.efficiency); !status.ok()) return status;
  return time;
}

Status check_efficiency(int ranks, double efficiency) {
  constexpr double kRounding = 1e-9;
  if (efficiency <= 1 + kRounding) return {};
  return {
      Code::InvalidArgument,
      base::format("the simulator is wrong: an efficiency of {:.4g} on {} ranks is above 1; report "
                   "it as a bug",
                   efficiency, ranks)};
}

Result<TrainingTime> simulate_training(const TrainingInput& input) {
  Result<TrainingSimulator> simulator = TrainingSimulator::of(input);
  if (!simulator.ok()) return simulator.status();
  return simulator.value().time(simulator.value().speed(), simulator.value().spread());
}

}  // namespace sluice::simulate
