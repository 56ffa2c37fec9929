// tiny_training.h - trainings of seconds: images drawn here, ranks as threads.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "bench/allreduce/temporary_folder.h"
#include "data/data.h"
#include "sluice/status.h"
#include "train/loop/trainer.h"

namespace sluice::train {

struct TinyData {
  int train = 96;
  int validation = 37;
  int classes = 4;
  int side = 28;
};

// A class is where the image is bright, under noise; a function of the numbers alone.
data::Data tiny_data(const TinyData& wanted = {});

// lenet on tiny_data(), a rank's batch 8, two epochs of 12 global steps of 8 at one rank.
recipe::Recipe tiny_recipe();

using bench::TemporaryFolder;

// What a run told.
struct Heard final : TrainingEvents {
  void started(const StartUp& start_up) override { start_ups.push_back(start_up); }
  void stepped(const StepReport& report) override;
  void evaluated(const EvaluationReport& report) override { evaluations.push_back(report); }
  void checkpointed(const CheckpointReport& report) override { checkpoints.push_back(report); }
  void note(const std::string& sentence) override { notes.push_back(sentence); }

  std::function<void(const StepReport&)> on_step;  // may be empty
  std::vector<StartUp> start_ups;
  std::vector<StepReport> steps;
  std::vector<EvaluationReport> evaluations;
  std::vector<CheckpointReport> checkpoints;
  std::vector<std::string> notes;
};

struct TinyRun {
  TrainerOptions options;
  int ranks = 1;
  TinyData data;
  Heard* heard = nullptr;
  std::vector<std::atomic<int>>* stops = nullptr;  // by rank
};

// Of every rank.
std::vector<Result<TrainingSummary>> try_tiny(const TinyRun& run);
// Rank 0's; fails the test unless every rank's training went well.
TrainingSummary train_tiny(const TinyRun& run);

}  // namespace sluice::train
