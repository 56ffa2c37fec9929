// training_step.h - one training step of one rank: forward and backward of each of its batches, the
// mean of the gradients over ranks, the update.
//
// A step of several batches accumulates their gradients before any is sent. The weight of a sample
// in the gradient of the step does not depend on the number of ranks and batches: a batch without
// its broken images weighs less.
#pragma once

#include <cstdint>
#include <string>

#include "recipe/learning_rate.h"
#include "sluice/status.h"
#include "sluice/torch/rmsprop_warm_up.h"
#include "train/loop/start_up.h"
#include "train/loop/training_batches.h"
#include "train/report/step_totals.h"

namespace sluice::train {

struct StepOutcome {
  StepTotals totals;     // of this rank, without seconds
  double rate = 0;       // learning rate
  bool skipped = false;  // after an overflow
  std::string warning;   // about the overflow
};

// Thread-safety: one thread at a time.
class TrainingStep {
 public:
  // Setup and recipe must outlive it.
  TrainingStep(TrainingSetup& setup, const recipe::Recipe& recipe);

  // Takes the batches of the step from `batches`. Throws Error, as DataParallel does.
  Result<StepOutcome> take(std::int64_t step, TrainingBatches& batches);
  // With double buffering: completes the update that the last step has started.
  void flush();

  // Records some of the next `steps` steps in setup.traced, part by part: eight of them, after the
  // first ten or from the middle of a short run.
  void trace_some(std::int64_t steps);

 private:
  static constexpr std::int64_t kTracedAfter = 10;
  static constexpr std::int64_t kTracedSteps = 8;

  void trace(bool on);
  double backward(const data::Batch& batch, const recipe::EpochRow& epoch, bool last);
  double waited_s() const;
  template <class Work>
  void timed(const char* name, const Work& work);

  TrainingSetup& setup_;
  const recipe::Recipe& recipe_;
  recipe::LearningRateSchedule rates_;
  RmspropWarmUp* warm_up_;  // null with another optimizer
  Timeline* timeline_;      // of the current step
  std::int64_t taken_ = 0;
  std::int64_t first_traced_ = -1;  // -1: no step is traced
};

}  // namespace sluice::train
