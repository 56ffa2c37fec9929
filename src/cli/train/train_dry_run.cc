#include "cli/train/train_dry_run.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/format.h"
#include "base/text.h"
#include "cli/terminal.h"
#include "data/data.h"
#include "recipe/learning_rate.h"

namespace sluice::cli {

PlannedData planned_data(const TrainJob& job) {
  if (!job.data.empty()) {
    const data::Data data = data::open_data(job.data).value();
    return {.description = data.description,
            .samples = static_cast<std::int64_t>(data.train->size()),
            .classes = static_cast<int>(data.classes.size()),
            .channels = data.channels,
            .image = data.height};
  }
  if (job.recipe.name == "mnist")
    return {"MNIST (60,000 images; assumed without --data)", 60'000, 10, 1, 28};
  if (job.recipe.name == "cifar10")
    return {"CIFAR-10 (50,000 images; assumed without --data)", 50'000, 10, 3, 32};
  return {"ImageNet-1k (1,281,167 images, 1,000 classes; assumed without --data)", 1'281'167, 1000,
          3, 0};
}

DryRun dry_run(const TrainJob& job, int ranks) {
  DryRun run{.job = job, .ranks = ranks, .data = planned_data(job)};
  // Like the trainer: crops have the recipe's size, whole images keep their own.
  const bool cropped =
      job.recipe.augmentation == recipe::AugmentationKind::ResizedCrop || run.data.image == 0;
  run.model =
      recipe::model_table(job.recipe.model, {.classes = run.data.classes,
                                             .channels = run.data.channels,
                                             .image = cropped ? job.recipe.image : run.data.image})
          .value();
  run.plan = recipe::make_epoch_table(job.recipe, ranks, run.data.samples).value();
  return run;
}

std::vector<EpochPhase> phases_of(const recipe::EpochTable& plan) {
  std::vector<EpochPhase> phases;
  for (std::size_t i = 0; i < plan.epochs.size(); ++i) {
    const recipe::EpochRow& epoch = plan.epochs[i];
    const bool same = !phases.empty() && phases.back().each.batch == epoch.batch &&
                      phases.back().each.accumulate == epoch.accumulate &&
                      phases.back().each.steps == epoch.steps;
    if (same) {
      ++phases.back().epochs;
    } else {
      phases.push_back({static_cast<std::int64_t>(i), 1, epoch});
    }
  }
  return phases;
}

std::vector<std::int64_t> key_steps(const recipe::Recipe& recipe, const recipe::EpochTable& plan) {
  std::set<std::int64_t> steps{0, plan.steps / 2, plan.steps - 1};
  const auto around = [&](double epoch) {
    const std::int64_t step = plan.step_at(epoch);
    if (step > 0) steps.insert(step - 1);
    if (step < plan.steps) steps.insert(step);
  };
  if (recipe.warm_up_epochs > 0) around(recipe.warm_up_epochs);
  for (const recipe::LearningRateDrop& drop : recipe.drops) around(drop.at);
  for (const recipe::BatchPhase& phase : recipe.batch_phases) around(phase.epoch);
  return {steps.begin(), steps.end()};
}

namespace {

using Json = nlohmann::ordered_json;

std::string settings_text(const recipe::Recipe& recipe) {
  const recipe::RecipeSettings settings = recipe::settings_of(recipe);
  std::size_t name = 0;
  std::size_t text = 0;
  for (const auto& [key, value] : settings) {
    name = std::max(name, key.size());
    text = std::max(text, std::min<std::size_t>(value.size(), 24));
  }
  std::string lines;
  for (const auto& [key, value] : settings) {
    const std::string line = base::format("  {:<{}} = {:<{}}  {}", key, name, value, text,
                                          recipe::source_of(recipe, key));
    lines += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return lines;
}

std::string phases_text(const recipe::EpochTable& plan) {
  std::string lines = base::format("  {:<12} {:>9} {:>14} {:>12} {:>14}\n", "epochs", "steps each",
                                   "batch per rank", "accumulated", "global batch");
  for (const EpochPhase& phase : phases_of(plan)) {
    const std::string epochs = phase.epochs == 1 ? base::format("{}", phase.first_epoch + 1)
                                                 : base::format("{}-{}", phase.first_epoch + 1,
                                                                phase.first_epoch + phase.epochs);
    lines += base::format("  {:<12} {:>10} {:>14} {:>12} {:>14}\n", epochs,
                          with_commas(phase.each.steps), phase.each.batch, phase.each.accumulate,
                          with_commas(phase.each.global_batch));
  }
  return lines;
}

std::string rates_text(const recipe::Recipe& recipe, const recipe::EpochTable& plan) {
  std::string lines = base::format("  {:>10} {:>9} {:>12}\n", "step", "epoch", "rate");
  for (const std::int64_t step : key_steps(recipe, plan)) {
    lines += base::format("  {:>10} {:>9.2f} {:>12.6g}\n", with_commas(step + 1),
                          plan.epoch_at(step), recipe::learning_rate_at(recipe, plan, step));
  }
  return lines;
}

}  // namespace

std::string dry_run_text(const DryRun& run) {
  const recipe::Recipe& recipe = run.job.recipe;
  std::string text =
      base::format("recipe {}: {}\n{}\n", recipe.name, recipe.about, settings_text(recipe));
  const auto parameters = run.model.gradient_elements();
  text += base::format(
      "model   {}: {} parameters in {} tensors, {} of gradients in f32, {:.3g} GFLOP forward per "
      "image of {}x{}\n",
      run.model.name, with_commas(parameters), run.model.gradient_tensors(),
      base::format_bytes(4.0 * static_cast<double>(parameters)), run.model.forward_flops() / 1e9,
      run.model.input.image, run.model.input.image);
  text += base::format("data    {}\n", run.data.description);
  text += base::format("ranks   {}\n", run.ranks);
  const double target = run.job.target > 0 ? run.job.target : recipe.target;
  if (target > 0) text += base::format("target  {}\n", percent_text(target));
  text +=
      base::format("plan    {} steps in {:.4g} epochs of {} images\n", with_commas(run.plan.steps),
                   run.plan.epoch_at(run.plan.steps), with_commas(run.plan.samples));
  text += phases_text(run.plan);
  text += "rate\n" + rates_text(recipe, run.plan);
  return text;
}

Json dry_run_json(const DryRun& run) {
  const recipe::Recipe& recipe = run.job.recipe;
  Json settings = Json::object();
  for (const auto& [key, value] : recipe::settings_of(recipe))
    settings[key] = {{"value", value}, {"source", recipe::source_of(recipe, key)}};
  Json phases = Json::array();
  for (const EpochPhase& phase : phases_of(run.plan)) {
    phases.push_back({{"first_epoch", phase.first_epoch + 1},
                      {"epochs", phase.epochs},
                      {"steps", phase.each.steps},
                      {"batch", phase.each.batch},
                      {"accumulate", phase.each.accumulate},
                      {"global_batch", phase.each.global_batch}});
  }
  Json rates = Json::array();
  for (const std::int64_t step : key_steps(recipe, run.plan)) {
    rates.push_back({{"step", step + 1},
                     {"epoch", run.plan.epoch_at(step)},
                     {"rate", recipe::learning_rate_at(recipe, run.plan, step)}});
  }
  const double target = run.job.target > 0 ? run.job.target : recipe.target;
  return {{"recipe", recipe.name},
          {"about", recipe.about},
          {"settings", settings},
          {"model",
           {{"name", run.model.name},
            {"parameters", run.model.gradient_elements()},
            {"tensors", run.model.gradient_tensors()},
            {"forward_flops", run.model.forward_flops()},
            {"image", run.model.input.image},
            {"classes", run.model.input.classes}}},
          {"data", {{"description", run.data.description}, {"samples", run.data.samples}}},
          {"ranks", run.ranks},
          {"target", target > 0 ? Json(target) : Json(nullptr)},
          {"steps", run.plan.steps},
          {"epochs", run.plan.epoch_at(run.plan.steps)},
          {"phases", phases},
          {"rates", rates}};
}

}  // namespace sluice::cli
