// training_step.h - one step at one rank: forward and backward of each of its batches, the mean of
// gradients over ranks, the update.
//
// A step of several batches adds their gradients up before any leave. What a sample adds to the
// step's gradient does not depend on how many ranks and batches share it: a batch that lacks broken
// images counts for the less.
#pragma once

#include <cstdint>
#include <string>

#include "recipe/learning_rate.h"
#include "sluice/status.h"
#include "sluice/torch/rmsprop_warm_up.h"
#include "train/loop/start_up.h"
#include "train/loop/training_batches.h"

namespace sluice::train {

struct StepOutcome {
  double loss = 0;  // this rank's mean over the step's samples
  std::int64_t images = 0;
  double rate = 0;
  double waited_s = 0;   // for communication
  bool skipped = false;  // after an overflow
  std::string warning;   // of it
};

// Thread-safety: one thread at a time.
class TrainingStep {
 public:
  // All must outlive it.
  TrainingStep(TrainingSetup& workshop, const recipe::Recipe& recipe);

  // `batches` brings those of the step next. Throws Error, as DataParallel does.
  Result<StepOutcome> take(std::int64_t step, TrainingBatches& batches);
  // With double buffering: the update that the last step has only started.
  void flush();

  // Whether later steps are noted in the workshop's timeline, each part of them.
  void trace(bool on);

 private:
  double backward(const data::Batch& batch, const recipe::EpochRow& epoch, bool last);
  double waited_s() const;
  template <class Work>
  void note(const char* name, const Work& work);

  TrainingSetup& workshop_;
  const recipe::Recipe& recipe_;
  recipe::LearningRateSchedule rates_;
  RmspropWarmUp* warm_up_;  // where that is the optimizer
  Timeline* timeline_;      // of the step under way
};

}  // namespace sluice::train
