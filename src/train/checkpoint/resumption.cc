#include "train/checkpoint/resumption.h"

#include <cstdlib>

#include "base/format.h"

namespace sluice::train {
namespace {

constexpr const char* kEpoch = "epoch";
constexpr const char* kGlobalBatch = "global_batch";
constexpr const char* kSamples = "samples";
constexpr const char* kClasses = "classes";
constexpr const char* kChannels = "channels";

double noted(const TrainingState& state, const char* name) {
  const auto found = state.notes.find(name);
  return found == state.notes.end() ? 0 : std::strtod(found->second.c_str(), nullptr);
}

Status same(const TrainingState& then, const char* name, const char* what, std::size_t now) {
  const double before = noted(then, name);
  if (before == static_cast<double>(now)) return {};
  return {
      Code::InvalidArgument,
      base::format("the run was trained on data with {} {}, and this has {}: resume it with the "
                   "same data, or start a new run from its weights with --init",
                   before, what, now)};
}

}  // namespace

double stored_epoch(const TrainingState& state) { return noted(state, kEpoch); }

TrainingState state_at(std::int64_t step, const recipe::Recipe& recipe,
                       const recipe::EpochTable& plan, const data::Data& data) {
  TrainingState state{.step = step, .seed = recipe.seed};
  for (const auto& [key, value] : recipe::settings_of(recipe)) state.settings.emplace(key, value);
  state.notes = {{kEpoch, base::format("{}", plan.epoch_at(step))},
                 {kGlobalBatch, base::format("{}", plan.epochs.front().global_batch)},
                 {kSamples, base::format("{}", data.train->size())},
                 {kClasses, base::format("{}", data.classes.size())},
                 {kChannels, base::format("{}", data.channels)}};
  return state;
}

Result<recipe::Recipe> resumed_recipe(const TrainingState& then, const recipe::Recipe& now,
                                      const data::Data& data) {
  // Where none is asked for it is the one that came about, on however many ranks.
  recipe::Recipe recipe = now;
  auto settings = then.settings;
  const auto global_batch = static_cast<std::int64_t>(noted(then, kGlobalBatch));
  if (now.global_batch == 0 || now.global_batch == global_batch) {
    recipe.global_batch = global_batch;
    settings[kGlobalBatch] = base::format("{}", now.global_batch);
  }
  if (Status status = recipe::may_continue(settings, stored_epoch(then), now); !status.ok())
    return status;
  if (Status status = same(then, kSamples, "samples", data.train->size()); !status.ok())
    return status;
  if (Status status = same(then, kClasses, "classes", data.classes.size()); !status.ok())
    return status;
  return recipe;
}

recipe::ModelInput stored_input(const TrainingState& state, const recipe::Recipe& recipe) {
  return {.classes = static_cast<int>(noted(state, kClasses)),
          .channels = static_cast<int>(noted(state, kChannels)),
          .image = recipe.image};
}

}  // namespace sluice::train
