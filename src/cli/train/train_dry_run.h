// train_dry_run.h - `sluice train --dry-run`: the plan of a training, without training.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/train/train_job.h"
#include "recipe/epoch_table.h"
#include "recipe/models.h"

namespace sluice::cli {

// The facts of the data that the plan needs.
struct PlannedData {
  std::string description;
  std::int64_t samples = 0;
  int classes = 0;
  int channels = 0;
  int image = 0;  // height and width; 0: the images differ in size
};

// Opens the job's data. Without data, assumes the data set that the recipe was published with:
// MNIST, CIFAR-10 or ImageNet-1k.
PlannedData planned_data(const TrainJob& job);

struct DryRun {
  TrainJob job;
  int ranks = 1;
  PlannedData data;
  recipe::ModelTable model;
  recipe::EpochTable plan;
};
DryRun dry_run(const TrainJob& job, int ranks);

// Consecutive epochs with the same batch and number of steps.
struct EpochPhase {
  std::int64_t first_epoch = 0;
  std::int64_t epochs = 0;
  recipe::EpochRow each;
};
std::vector<EpochPhase> phases_of(const recipe::EpochTable& plan);

// The steps at which to show the learning rate: the first, middle and last step, the end of the
// warm-up, and the steps before and after each drop and each change of batch. Sorted and unique.
std::vector<std::int64_t> key_steps(const recipe::Recipe& recipe, const recipe::EpochTable& plan);

std::string dry_run_text(const DryRun& run);
nlohmann::ordered_json dry_run_json(const DryRun& run);

}  // namespace sluice::cli
