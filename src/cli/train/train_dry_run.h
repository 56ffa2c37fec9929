// train_dry_run.h - all that a training would do, without doing it.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/train/train_options.h"
#include "recipe/epoch_table.h"
#include "recipe/models.h"

namespace sluice::cli {

// What the data is, as far as a plan needs it.
struct PlannedData {
  std::string description;
  std::int64_t samples = 0;
  int classes = 0;
  int channels = 0;
  int image = 0;  // height and width; 0: they differ
};

// Opens the job's data. Where none is given, what the recipe was published with: MNIST, CIFAR-10 or
// ImageNet-1k.
PlannedData planned_data(const TrainJob& job);

struct DryRun {
  TrainJob job;
  int ranks = 1;
  PlannedData data;
  recipe::ModelTable model;
  recipe::EpochTable plan;
};
DryRun dry_run(const TrainJob& job, int ranks);

// Epochs that follow each other with the same batch and number of steps.
struct EpochPhase {
  std::int64_t first_epoch = 0;
  std::int64_t epochs = 0;
  recipe::EpochRow each;
};
std::vector<EpochPhase> phases_of(const recipe::EpochTable& plan);

// The steps whose rate says most: the first and the last, where the warm-up ends, before and after
// every drop and change of batch, the middle. In order, none twice.
std::vector<std::int64_t> key_steps(const recipe::Recipe& recipe, const recipe::EpochTable& plan);

std::string dry_run_text(const DryRun& run);
nlohmann::ordered_json dry_run_json(const DryRun& run);

}  // namespace sluice::cli
