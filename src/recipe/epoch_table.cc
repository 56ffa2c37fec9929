#include "recipe/epoch_table.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "base/format.h"

namespace sluice::recipe {
namespace {

double part(std::int64_t count, std::int64_t whole) {
  return static_cast<double>(count) / static_cast<double>(whole);
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

Status refusal(std::string message) { return {Code::InvalidArgument, std::move(message)}; }

int batch_of(const Recipe& recipe, int epoch) {
  int batch = recipe.batch;
  for (const BatchPhase& phase : recipe.batch_phases) {
    if (epoch >= phase.epoch) batch = phase.batch;
  }
  return batch;
}

// Shares a step between the ranks: sets batch, accumulate and global_batch.
Result<EpochRow> shared_step(const Recipe& recipe, int batch, int ranks) {
  EpochRow row{.batch = batch, .global_batch = std::int64_t{batch} * ranks};
  if (recipe.global_batch == 0) return row;
  const std::int64_t whole = row.global_batch;
  if (recipe.global_batch * batch % recipe.batch != 0) {
    return refusal(
        base::format("a global batch of {} x {} / {} is not a whole number: "
                     "choose another global_batch or batch_phases",
                     recipe.global_batch, batch, recipe.batch));
  }
  row.global_batch = recipe.global_batch * batch / recipe.batch;
  const auto nearest = [&](std::int64_t multiple) {
    const std::int64_t below = row.global_batch / multiple * multiple;
    return below == 0 ? base::format("use {}", multiple)
                      : base::format("use {} or {}", below, below + multiple);
  };
  if (row.global_batch % ranks != 0) {
    return refusal(base::format("a global batch of {} cannot be shared evenly by {} ranks: {}",
                                row.global_batch, ranks, nearest(ranks)));
  }
  // The fewest backward passes of equal size. None may be small, because batch norm needs samples.
  const std::int64_t share = row.global_batch / ranks;
  const int most = static_cast<int>(std::min<std::int64_t>(share, batch));
  for (row.batch = most; 2 * row.batch > most; --row.batch) {
    if (share % row.batch != 0) continue;
    row.accumulate = static_cast<int>(share / row.batch);
    return row;
  }
  return refusal(
      base::format("a global batch of {} is {} samples per rank, which cannot be split into equal "
                   "backward passes of about {}: {}",
                   row.global_batch, share, batch, nearest(whole)));
}

Status enough_samples(const Recipe& recipe, const EpochRow& epoch, int ranks,
                      std::int64_t samples) {
  if (epoch.global_batch <= samples) return {};
  std::string product = base::format("{} x {} ranks", epoch.batch, ranks);
  if (epoch.accumulate > 1) product += base::format(" x {} backward passes", epoch.accumulate);
  std::string fits = base::format("use at most {} ranks", samples);
  if (samples >= ranks) {
    fits = recipe.global_batch > 0
               ? base::format("use a global_batch of at most {}", samples / ranks * ranks)
               : base::format("use a batch of at most {}", samples / ranks);
  }
  return refusal(base::format("{} samples are fewer than one global batch of {} ({}): {}", samples,
                              epoch.global_batch, product, fits));
}

// How often an action was due until `epoch`. Multiples of `every` are rounded, hence the tolerance.
double times_due(double first, double every, double epoch) {
  constexpr double kRounding = 1e-9;
  return epoch < first - kRounding ? 0 : std::floor((epoch - first) / every + kRounding) + 1;
}

bool due_after(double first, double every, const EpochTable& table, std::int64_t step) {
  if (step + 1 == table.steps) return true;
  if (every == 0) return false;
  return times_due(first, every, table.epoch_at(step + 1)) >
         times_due(first, every, table.epoch_at(step));
}

}  // namespace

const EpochRow& EpochTable::epoch_of(std::int64_t step) const {
  assert(step >= 0 && !epochs.empty());
  const auto after = std::upper_bound(
      epochs.begin(), epochs.end(), step,
      [](std::int64_t value, const EpochRow& epoch) { return value < epoch.first_step; });
  return *std::prev(after);
}

std::int64_t EpochTable::first_sample(std::int64_t step) const {
  const EpochRow& epoch = epoch_of(step);
  return epoch.first_sample + (step - epoch.first_step) * epoch.global_batch;
}

double EpochTable::epoch_at(std::int64_t step) const {
  if (epoch_end == EpochEnd::RunOn) return part(first_sample(step), samples);
  const EpochRow& epoch = epoch_of(step);
  const auto number = static_cast<double>(&epoch - epochs.data());
  return number + part(step - epoch.first_step, epoch.steps_of_an_epoch);
}

std::int64_t EpochTable::step_at(double epoch) const {
  std::int64_t first = 0;
  std::int64_t count = steps;
  while (count > 0) {
    const std::int64_t half = count / 2;
    if (epoch_at(first + half) < epoch) {
      first += half + 1;
      count -= half + 1;
    } else {
      count = half;
    }
  }
  return first;
}

Result<EpochTable> make_epoch_table(const Recipe& recipe, int ranks, std::int64_t samples) {
  if (ranks < 1 || samples < 1)
    return refusal(base::format("{} ranks cannot train on {} samples", ranks, samples));
  EpochTable table{.samples = samples, .ranks = ranks, .epoch_end = recipe.epoch_end};
  std::int64_t position = 0;  // in the stream
  for (int e = 0; e < recipe.epochs; ++e) {
    Result<EpochRow> shared = shared_step(recipe, batch_of(recipe, e), ranks);
    if (!shared.ok()) return shared.status();
    EpochRow& epoch = shared.value();
    if (Status status = enough_samples(recipe, epoch, ranks, samples); !status.ok()) return status;
    const std::int64_t begin = e * samples;
    const std::int64_t wanted =
        recipe.epochs >= e + 1 ? samples
                               : std::llround((recipe.epochs - e) * static_cast<double>(samples));
    const std::int64_t global = epoch.global_batch;
    epoch.first_step = table.steps;
    epoch.first_sample = recipe.epoch_end == EpochEnd::RunOn ? position : begin;
    switch (recipe.epoch_end) {
      case EpochEnd::Drop:
        epoch.steps = wanted / global;
        epoch.steps_of_an_epoch = samples / global;
        break;
      case EpochEnd::Fill:
        epoch.steps = ceil_div(wanted, global);
        epoch.steps_of_an_epoch = ceil_div(samples, global);
        break;
      case EpochEnd::RunOn:
        epoch.steps = ceil_div(std::max<std::int64_t>(begin + wanted - position, 0), global);
        epoch.steps_of_an_epoch = ceil_div(begin + samples - position, global);
        break;
    }
    if (epoch.steps == 0) break;
    position += epoch.steps * global;
    table.steps += epoch.steps;
    table.epochs.push_back(epoch);
  }
  if (table.steps == 0) {
    return refusal(
        base::format("{} epochs of {} samples are less than one step", recipe.epochs, samples));
  }
  return table;
}

bool evaluates_after(const Recipe& recipe, const EpochTable& table, std::int64_t step) {
  const double first = recipe.evaluate_first > 0 ? recipe.evaluate_first : recipe.evaluate_every;
  return due_after(first, recipe.evaluate_every, table, step);
}

bool checkpoints_after(const Recipe& recipe, const EpochTable& table, std::int64_t step) {
  return due_after(recipe.checkpoint_every, recipe.checkpoint_every, table, step);
}

}  // namespace sluice::recipe
