#include "simulate/iteration.h"

#include <algorithm>
#include <cmath>

#include "buckets/buckets.h"

namespace sluice::simulate {
namespace {

// Seconds to add to the residual and to choose chunks: 0.5 to 2 ms, from memory and unsure.
constexpr double kSparseSelection = 1e-3;

double latest(const std::vector<double>& times) {
  return *std::max_element(times.begin(), times.end());
}

struct Gradient {
  double ready = 0;
  double bytes = 0;
  bool dense = false;
};

double wire_bytes(const recipe::Recipe& recipe) { return recipe.wire == WireType::F32 ? 4 : 2; }

// In the order of backward: the last layer first, and within a layer the last parameter first.
std::vector<Gradient> gradients_of(const recipe::ModelTable& model, const recipe::Recipe& recipe) {
  std::vector<Gradient> gradients;
  const double flops = model.forward_flops();
  double done = 0;
  for (auto layer = model.layers.rbegin(); layer != model.layers.rend(); ++layer) {
    done += layer->forward_flops;
    const double ready = kForwardPart + (1 - kForwardPart) * (flops > 0 ? done / flops : 1);
    const auto add = [&](std::int64_t elements, bool dense) {
      gradients.push_back({ready, wire_bytes(recipe) * static_cast<double>(elements), dense});
    };
    if (layer->biases > 0) add(layer->biases, true);
    add(layer->weights, layer->one_dimensional);
  }
  return gradients;
}

}  // namespace

Result<std::vector<ReadyBucket>> ready_buckets(const recipe::ModelTable& model,
                                               const recipe::Recipe& recipe, double sparsity) {
  const std::vector<Gradient> gradients = gradients_of(model, recipe);
  std::vector<buckets::GradientSize> sizes;
  for (const Gradient& gradient : gradients) {
    const double sent = gradient.dense ? gradient.bytes : gradient.bytes * (1 - sparsity);
    sizes.push_back({.bytes = static_cast<std::size_t>(std::llround(sent))});
  }
  std::vector<buckets::BucketRange> ranges;
  if (recipe.double_buffering) {
    ranges = {{.first = 0, .count = gradients.size()}};
  } else if (recipe.groups.empty()) {
    ranges = buckets::lazy_buckets(sizes, recipe.theta);
  } else {
    Result<std::vector<buckets::BucketRange>> grouped =
        buckets::grouped_buckets(sizes, recipe.groups);
    if (!grouped.ok()) return grouped.status();
    ranges = std::move(grouped).value();
  }
  std::vector<ReadyBucket> buckets;
  for (const buckets::BucketRange& range : ranges) {
    ReadyBucket& bucket = buckets.emplace_back();
    for (std::size_t i = range.first; i < range.first + range.count; ++i) {
      const Gradient& gradient = gradients[i];
      bucket.ready = std::max(bucket.ready, gradient.ready);
      (gradient.dense ? bucket.dense_bytes : bucket.sparse_bytes) += gradient.bytes;
    }
  }
  return buckets;
}

double norm_bytes(const recipe::ModelTable& model, const recipe::Recipe& recipe) {
  constexpr double kBytesOfANorm = 4;
  double chunks = 0;
  for (const recipe::ModelLayer& layer : model.layers) {
    if (layer.one_dimensional) continue;
    chunks +=
        std::ceil(static_cast<double>(layer.weights) / static_cast<double>(recipe.sparse_chunk));
  }
  return kBytesOfANorm * chunks;
}

IterationSimulator::IterationSimulator(const ClusterScenario& scenario, recipe::Recipe recipe,
                                       recipe::ModelTable model, CollectiveSimulator collectives,
                                       int ranks)
    : scenario_{scenario},
      recipe_{std::move(recipe)},
      model_{std::move(model)},
      collectives_{std::move(collectives)},
      ranks_{ranks} {}

Result<IterationSimulator> IterationSimulator::of(const ClusterScenario& scenario,
                                                  const recipe::Recipe& recipe, int ranks) {
  Result<recipe::ModelTable> model = recipe::model_table(recipe.model, {.image = recipe.image});
  if (!model.ok()) return model.status();
  Result<CollectiveSimulator> collectives =
      CollectiveSimulator::on(scenario.cluster, ranks, scenario.conditions);
  if (!collectives.ok()) return collectives.status();
  return IterationSimulator{scenario, recipe, std::move(model).value(),
                            std::move(collectives).value(), ranks};
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
    const Selector selector{Collective::AllReduce, topology, scenario_.cluster.constants};
    for (const Candidate& candidate : selector.candidates(std::llround(bytes))) {
      if (choice.algorithm != nullptr && candidate.algorithm != choice.algorithm) continue;
      choice = {candidate.algorithm, candidate.shape};
      break;
    }
    if (choice.shape.ranks != ranks_) {
      return no_candidate(recipe_.algorithm, scenario_.cluster);
    }
  } else {
    Shape asked{.ranks = ranks_};
    const Result<std::vector<int>> grid = grid_of(scenario_, ranks_);
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
    return collectives_.run(*what, shape, {.bytes = bytes, .starts_s = starts_s});
  }
  const auto known = durations_.find(bytes);
  if (known == durations_.end()) {
    const Result<std::vector<double>> done = collectives_.run(*what, shape, {.bytes = bytes});
    if (!done.ok()) return done.status();
    durations_[bytes] = latest(done.value());
  }
  return std::vector<double>(starts_s.size(), starts_s.front() + durations_[bytes]);
}

Result<std::vector<double>> IterationSimulator::send_buckets(const IterationWork& work,
                                                             const std::vector<double>& delays_s,
                                                             std::vector<BucketTime>& times) {
  Result<std::vector<ReadyBucket>> buckets = ready_buckets(model_, recipe_, work.sparsity);
  if (!buckets.ok()) return buckets.status();
  const double last_pass = work.pass_s * (work.accumulate - 1);
  std::vector<double> free(static_cast<std::size_t>(ranks_), 0);
  for (std::size_t k = 0; k < buckets.value().size(); ++k) {
    const ReadyBucket& ready = buckets.value()[k];
    BucketTime& bucket = times.emplace_back();
    bucket.bytes = ready.bytes(work.sparsity);
    if (work.sparsity > 0 && k + 1 == buckets.value().size())
      bucket.bytes += norm_bytes(model_, recipe_);
    bucket.ready_s = recipe_.double_buffering ? 0 : last_pass + ready.ready * work.pass_s;
    std::vector<double> starts;
    for (std::size_t r = 0; r < free.size(); ++r)
      starts.push_back(std::max(free[r], bucket.ready_s + delays_s[r]));
    bucket.begin_s = *std::min_element(starts.begin(), starts.end());
    Result<std::vector<double>> done = all_reduce(bucket.bytes, starts, bucket.algorithm);
    if (!done.ok()) return done.status();
    free = std::move(done).value();
    bucket.end_s = latest(free);
  }
  return free;
}

Result<IterationTime> IterationSimulator::step(const IterationWork& work) {
  IterationTime time{.work = work};
  const double passes = work.pass_s * work.accumulate + (work.sparsity > 0 ? kSparseSelection : 0);
  time.compute_s = passes + work.optimizer_s;
  time.straggler_s = straggler_seconds(work.spread, time.compute_s, ranks_);
  const std::vector<double> delays_s =
      jitter(ranks_ > 1 ? scenario_.jitter_s : 0, scenario_.seed, ranks_);
  double sent = 0;
  if (ranks_ > 1) {
    const Result<std::vector<double>> done = send_buckets(work, delays_s, time.buckets);
    if (!done.ok()) return done.status();
    sent = latest(done.value());
  }
  if (recipe_.double_buffering) {
    // The slowest rank catches up while gradients are still in flight.
    const double computed = time.compute_s + latest(delays_s) + time.straggler_s;
    time.exposed_s = std::max(0.0, sent - computed);
    time.seconds = computed + time.exposed_s;
  } else {
    const double computed = passes + latest(delays_s);
    time.exposed_s = std::max(0.0, sent - computed);
    time.seconds = computed + time.exposed_s + work.optimizer_s + time.straggler_s;
  }
  time.stall_s = std::max(0.0, work.input_s - time.seconds);
  time.seconds += time.stall_s;
  return time;
}

}  // namespace sluice::simulate
