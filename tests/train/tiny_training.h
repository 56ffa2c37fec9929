// tiny_training.h - trainings that take seconds, with generated images and ranks as threads.
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

// Noisy images with a bright band; the class is the position of the band. An image is a function of
// its number.
data::Data tiny_data(const TinyData& wanted = {});

// lenet on tiny_data(), batch 8 for each rank, two epochs; one rank takes 12 steps in an epoch.
recipe::Recipe tiny_recipe();

using bench::TemporaryFolder;

// Records the events of a run.
struct RecordedEvents final : TrainingEvents {
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
  RecordedEvents* events = nullptr;
  std::vector<std::atomic<int>>* stops = nullptr;  // by rank
};

// Returns the results of all ranks.
std::vector<Result<TrainingSummary>> try_tiny(const TinyRun& run);
// Returns the result of rank 0. Fails the test unless all ranks succeed.
TrainingSummary train_tiny(const TinyRun& run);

}  // namespace sluice::train
