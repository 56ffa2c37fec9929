// training_loop.h - the steps of a training at one rank, and what happens between them.
//
// After a step: an evaluation where the recipe wants one, then a checkpoint likewise. Neither
// changes what training goes on with. Every decision to end is taken from numbers that are the same
// at all ranks, at the same step, so no rank is left waiting for another.
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
#include "train/report/step_meter.h"
#include "train/report/step_trace.h"
#include "train/report/totals_exchange.h"

namespace sluice::train {

// All must outlive the loop.
struct LoopContext {
  const TrainerOptions& options;
  TrainingEvents* events;  // may be null
  const std::atomic<int>& stop;
  std::chrono::steady_clock::time_point start;
};

class TrainingLoop {
 public:
  TrainingLoop(const LoopContext& terms, TrainingSetup workshop);

  // Throws Error, as DataParallel does.
  Result<TrainingSummary> run();

 private:
  Status prepare();
  Status take_step();
  void hear(const StepTotals& beat);
  Status between_steps();
  Status evaluate();
  Status save();
  bool healthy();
  void keep_results();
  void conclude();
  double epoch() const { return workshop_.plan.epoch_at(step_); }
  double elapsed_s() const { return seconds_since(terms_.start); }

  LoopContext terms_;
  TrainingSetup workshop_;
  const recipe::Recipe& recipe_;
  RunReporter journal_;
  TrainingStep steps_;
  std::int64_t step_ = 0;  // done
  std::int64_t first_step_ = 0;
  std::int64_t not_finite_ = 0;  // losses in a row, up to now
  std::deque<double> last_losses_;
  std::optional<TrainingEnd> end_;
  TrainingSummary summary_;
  StepMeter meter_;
  TotalsExchange pulse_;
  std::unique_ptr<StepTrace> trace_;
  std::unique_ptr<TrainingBatches> batches_;
  std::unique_ptr<CheckpointWriter> writer_;  // where there is a folder
  std::int64_t saved_step_ = -1;
};

}  // namespace sluice::train
