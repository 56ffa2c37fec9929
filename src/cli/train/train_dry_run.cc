#include "cli/train/train_dry_run.h"

#include <algorithm>
#include <set>

#include "data/data.h"

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
    return {"MNIST (60,000 images; none is given)", 60'000, 10, 1, 28};
  if (job.recipe.name == "cifar10")
    return {"CIFAR-10 (50,000 images; none is given)", 50'000, 10, 3, 32};
  return {"ImageNet-1k (1,281,167 images, 1,000 classes; none is given)", 1'281'167, 1000, 3, 0};
}

DryRun dry_run(const TrainJob& job, int ranks) {
  DryRun run{.job = job, .ranks = ranks, .data = planned_data(job)};
  // As the trainer does it: crops have the recipe's size, whole images their own.
  const bool cropped =
      job.recipe.augmentation == recipe::AugmentationKind::ResizedCrop || run.data.image == 0;
  run.model =
      recipe::model_table(job.recipe.model, {.classes = run.data.classes,
                                             .channels = run.data.channels,
                                             .image = cropped ? job.recipe.image : run.data.image})
          .value();
  run.plan = recipe::plan_training(job.recipe, ranks, run.data.samples).value();
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

}  // namespace sluice::cli
