#include "simulate/iteration.h"

#include <algorithm>
#include <cmath>

#include "base/format.h"
#include "simulate/backward.h"
#include "simulate/jitter.h"
#include "sluice/analysis/select.h"

namespace sluice::simulate {
namespace {

// Adding up what is held back and choosing chunks: 0.5 to 2 ms [M?].
constexpr double kSparseSelection = 1e-3;

double latest(const std::vector<double>& times) {
  return *std::max_element(times.begin(), times.end());
}

}  // namespace

IterationSimulator::IterationSimulator(const WhatIf& world, recipe::Recipe recipe,
                                       recipe::ModelTable model, CollectiveSimulator collectives,
                                       int ranks)
    : world_{world},
      recipe_{std::move(recipe)},
      model_{std::move(model)},
      collectives_{std::move(collectives)},
      ranks_{ranks} {}

Result<IterationSimulator> IterationSimulator::of(const WhatIf& world, const recipe::Recipe& recipe,
                                                  int ranks) {
  Result<recipe::ModelTable> model = recipe::model_table(recipe.model, {.image = recipe.image});
  if (!model.ok()) return model.status();
  Result<CollectiveSimulator> collectives =
      CollectiveSimulator::on(world.cluster, ranks, world.conditions);
  if (!collectives.ok()) return collectives.status();
  return IterationSimulator{world, recipe, std::move(model).value(), std::move(collectives).value(),
                            ranks};
}

Result<IterationSimulator::Choice> IterationSimulator::choice_for(double bytes) {
  if (const auto known = choices_.find(bytes); known != choices_.end()) return known->second;
  const Topology& topology = collectives_.topology();
  Choice choice;
  if (!recipe_.algorithm.empty()) {
    const Result<const Algorithm*> found = find_algorithm(recipe_.algorithm);
    if (!found.ok()) return found.status();
    choice.algorithm = found.value();
  }
  if (choice.algorithm == nullptr || choice.algorithm->uses_segments) {
    const Selector selector{
        Collective::AllReduce, topology, world_.cluster.constants, {.lanes = false}};
    for (const Candidate& candidate : selector.candidates(std::llround(bytes))) {
      if (choice.algorithm != nullptr && candidate.algorithm != choice.algorithm) continue;
      choice = {candidate.algorithm, candidate.shape};
      break;
    }
    if (choice.shape.ranks != ranks_) {
      return Status{Code::InvalidArgument,
                    base::format("{} does no all_reduce that cluster {} could run",
                                 recipe_.algorithm, world_.cluster.name)};
    }
  } else {
    Shape asked{.ranks = ranks_};
    const Result<std::vector<int>> grid = grid_of(world_, ranks_);
    if (!grid.ok()) return grid.status();
    asked.grid = grid.value();
    Result<Shape> shape = asked.grid.empty() ? shape_on(*choice.algorithm, asked, topology)
                                             : complete_shape(*choice.algorithm, asked);
    if (!shape.ok()) return shape.status();
    choice.shape = std::move(shape).value();
  }
  choices_.emplace(bytes, choice);
  return choice;
}

Result<std::vector<double>> IterationSimulator::all_reduce(double bytes,
                                                           const std::vector<double>& starts_s,
                                                           std::string& algorithm) {
  const Result<Choice> choice = choice_for(bytes);
  if (!choice.ok()) return choice.status();
  const auto& [what, shape] = choice.value();
  algorithm = what->name;
  const bool together = std::all_of(starts_s.begin(), starts_s.end(),
                                    [&](double start) { return start == starts_s.front(); });
  if (!together) {
    return collectives_.run(*what, shape,
                            {.bytes = bytes, .lanes = world_.lanes, .starts_s = starts_s});
  }
  const auto known = durations_.find(bytes);
  if (known == durations_.end()) {
    const Result<std::vector<double>> done =
        collectives_.run(*what, shape, {.bytes = bytes, .lanes = world_.lanes});
    if (!done.ok()) return done.status();
    durations_[bytes] = latest(done.value());
  }
  return std::vector<double>(starts_s.size(), starts_s.front() + durations_[bytes]);
}

Result<std::vector<double>> IterationSimulator::send_buckets(const StepKind& kind,
                                                             const std::vector<double>& late,
                                                             std::vector<BucketTime>& times) {
  Result<std::vector<ReadyBucket>> buckets = ready_buckets(model_, recipe_, kind.sparsity);
  if (!buckets.ok()) return buckets.status();
  const double last_pass = kind.pass_s * (kind.accumulate - 1);
  std::vector<double> free(static_cast<std::size_t>(ranks_), 0);
  for (std::size_t k = 0; k < buckets.value().size(); ++k) {
    const ReadyBucket& ready = buckets.value()[k];
    BucketTime& bucket = times.emplace_back();
    bucket.bytes = ready.bytes(kind.sparsity);
    if (kind.sparsity > 0 && k + 1 == buckets.value().size())
      bucket.bytes += norm_bytes(model_, recipe_);
    bucket.ready_s = recipe_.double_buffering ? 0 : last_pass + ready.ready * kind.pass_s;
    std::vector<double> starts;
    for (std::size_t r = 0; r < free.size(); ++r)
      starts.push_back(std::max(free[r], bucket.ready_s + late[r]));
    bucket.begin_s = *std::min_element(starts.begin(), starts.end());
    Result<std::vector<double>> done = all_reduce(bucket.bytes, starts, bucket.algorithm);
    if (!done.ok()) return done.status();
    free = std::move(done).value();
    bucket.end_s = latest(free);
  }
  return free;
}

Result<IterationTime> IterationSimulator::step(const StepKind& kind) {
  IterationTime time{.kind = kind};
  const double passes = kind.pass_s * kind.accumulate + (kind.sparsity > 0 ? kSparseSelection : 0);
  time.compute_s = passes + kind.optimizer_s;
  time.straggler_s = straggler_seconds(kind.spread, time.compute_s, ranks_);
  const std::vector<double> late = lateness(ranks_ > 1 ? world_.jitter_s : 0, world_.seed, ranks_);
  double sent = 0;
  if (ranks_ > 1) {
    const Result<std::vector<double>> done = send_buckets(kind, late, time.buckets);
    if (!done.ok()) return done.status();
    sent = latest(done.value());
  }
  if (recipe_.double_buffering) {
    // A rank that lags is made up for while gradients still travel.
    const double computed = time.compute_s + latest(late) + time.straggler_s;
    time.exposed_s = std::max(0.0, sent - computed);
    time.seconds = computed + time.exposed_s;
  } else {
    const double computed = passes + latest(late);
    time.exposed_s = std::max(0.0, sent - computed);
    time.seconds = computed + time.exposed_s + kind.optimizer_s + time.straggler_s;
  }
  time.stall_s = std::max(0.0, kind.input_s - time.seconds);
  time.seconds += time.stall_s;
  return time;
}

}  // namespace sluice::simulate
