// training_loop.h - the steps of a training at one rank, with the evaluations and checkpoints
// between them.
//
// After a step come an evaluation and then a checkpoint, if the recipe asks for them. Neither
// changes the training. Every decision to end is made after the same step at all ranks, from
// numbers that are the same at all ranks. So no rank waits for a rank that has ended.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>

#include "sluice/status.h"
#include "train/checkpoint/checkpoint_writer.h"
#include "train/loop/start_up.h"
#include "train/loop/trainer.h"
#include "train/loop/training_batches.h"
#include "train/loop/training_step.h"
#include "train/report/run_reporter.h"
#include "train/report/step_totals.h"

namespace sluice::train {

// The members must outlive the loop.
struct LoopContext {
  const TrainerOptions& options;
  TrainingEvents* events;  // may be null
  const std::atomic<int>& stop;
  std::chrono::steady_clock::time_point start;
};

class TrainingLoop {
 public:
  TrainingLoop(const LoopContext& context, TrainingSetup setup);

  // Throws Error, as DataParallel does.
  Result<TrainingSummary> run();

 private:
  Status prepare();
  Status take_step();
  void apply_totals(const StepTotals& totals);
  Status between_steps();
  Status evaluate();
  Status save();
  bool all_finite();
  void write_results();
  void summarise();
  double epoch() const { return setup_.epoch_table.epoch_at(step_); }
  double elapsed_s() const { return seconds_since(context_.start); }

  LoopContext context_;
  TrainingSetup setup_;
  const recipe::Recipe& recipe_;
  RunReporter reporter_;
  TrainingStep steps_;
  std::int64_t step_ = 0;  // number of steps done
  std::int64_t first_step_ = 0;
  std::int64_t not_finite_ = 0;  // number of latest steps in a row whose loss was not finite
  std::deque<double> last_losses_;
  std::optional<TrainingEnd> end_;
  TrainingSummary summary_;
  StepMeter meter_;
  TotalsExchange exchange_;
  std::unique_ptr<TrainingBatches> batches_;
  std::unique_ptr<CheckpointWriter> writer_;  // null without a run folder
  std::int64_t saved_step_ = -1;
};

}  // namespace sluice::train
