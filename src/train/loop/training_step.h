// training_step.h - one training step of one rank: forward and backward of its batches, the mean of
// the gradients over the ranks, the update.
//
// If a step has several batches, it adds up their gradients before any is sent. Every sample has
// the same weight in the gradient of the step, for any number of ranks and batches. So a batch with
// broken images, which are left out, weighs less.
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
  StepTotals totals;     // of this rank; `seconds` is not set
  double rate = 0;       // learning rate
  bool skipped = false;  // after an overflow
  std::string warning;   // about the overflow
};

// Thread-safety: one thread at a time.
class TrainingStep {
 public:
  // `setup` and `recipe` must outlive it.
  TrainingStep(TrainingSetup& setup, const recipe::Recipe& recipe);

  // Takes the batches of the step from `batches`. Throws Error, as DataParallel does.
  Result<StepOutcome> take(std::int64_t step, TrainingBatches& batches);
  // With double buffering: applies the last step's gradients, which are still in flight.
  void flush();

  // Records eight of the next `steps` steps in setup.traced: those after the first ten, or in a
  // short run those from its middle on.
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
  Timeline* timeline_;      // records the current step
  std::int64_t taken_ = 0;
  std::int64_t first_traced_ = -1;  // -1: no step is traced
};

}  // namespace sluice::train
