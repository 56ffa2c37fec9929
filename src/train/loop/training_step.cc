#include "train/loop/training_step.h"

#include "base/random.h"
#include "train/loop/batch_tensors.h"
#include "train/loop/loss.h"
#include "train/models/batch_norm.h"

namespace sluice::train {

TrainingStep::TrainingStep(TrainingSetup& workshop, const recipe::Recipe& recipe)
    : workshop_{workshop},
      recipe_{recipe},
      rates_{recipe::learning_rate_schedule(recipe, workshop.plan)},
      warm_up_{dynamic_cast<RmspropWarmUp*>(workshop.optimizer.get())},
      timeline_{workshop.waits.get()} {
  trace(false);
}

void TrainingStep::trace(bool on) {
  timeline_ = on ? workshop_.traced.get() : workshop_.waits.get();
  workshop_.parallel->reducer().set_timeline(timeline_);
}

template <class Work>
void TrainingStep::note(const char* name, const Work& work) {
  const std::int64_t begin = timeline_->now_ns();
  work();
  timeline_->add({.name = name, .begin_ns = begin, .end_ns = timeline_->now_ns()});
}

double TrainingStep::waited_s() const {
  double seconds = timeline_->waited_s();
  if (recipe_.batch_norm == recipe::BatchNormMode::Synchronised) {
    seconds += seconds_waited(*workshop_.network);
  }
  return seconds;
}

// Returns the batch's part of the step's loss.
double TrainingStep::backward(const data::Batch& batch, const recipe::EpochRow& epoch, bool last) {
  const auto [images, labels] = tensors_over(batch);
  const double part = static_cast<double>(batch.count) /
                      (static_cast<double>(epoch.batch) * static_cast<double>(epoch.accumulate));
  torch::Tensor loss;
  note("forward", [&, &images = images, &labels = labels] {
    loss =
        smoothed_cross_entropy(workshop_.network->forward(images), labels, recipe_.label_smoothing);
  });
  const double factor = part * workshop_.parallel->loss_scale();
  const torch::Tensor scaled = factor == 1 ? loss : loss * factor;
  note("backward", [&] {
    if (last) {
      scaled.backward();
    } else {
      const auto pause = workshop_.parallel->no_sync();
      scaled.backward();
    }
  });
  return loss.item<double>() * part;
}

Result<StepOutcome> TrainingStep::take(std::int64_t step, TrainingBatches& batches) {
  const recipe::EpochRow& epoch = workshop_.plan.epoch_of(step);
  const double epoch_now = workshop_.plan.epoch_at(step);
  StepOutcome outcome{.rate = recipe::learning_rate_at(rates_, epoch_now)};
  workshop_.optimizer->zero_grad(true);
  workshop_.network->seed_dropout(
      base::mixed({recipe_.seed, static_cast<std::uint64_t>(step),
                   static_cast<std::uint64_t>(workshop_.communicator.rank())}));
  const double waited_before = waited_s();
  for (int i = 0; i < epoch.accumulate; ++i) {
    Result<const data::Batch*> batch = batches.next();
    if (!batch.ok()) return batch.status();
    outcome.loss += backward(*batch.value(), epoch, i + 1 == epoch.accumulate);
    outcome.images += static_cast<std::int64_t>(batch.value()->count);
  }
  FinishedStep finished = workshop_.parallel->finish();
  outcome.waited_s = waited_s() - waited_before;
  outcome.skipped = finished.skipped;
  outcome.warning = std::move(finished.warning);
  note("optimizer", [&] {
    workshop_.optimizer->set_lr(outcome.rate);
    if (warm_up_ != nullptr) warm_up_->set_epoch(epoch_now);
    workshop_.optimizer->step();
  });
  return outcome;
}

void TrainingStep::flush() {
  if (workshop_.parallel->flush().empty) return;
  workshop_.optimizer->step();
  workshop_.optimizer->zero_grad(true);
}

}  // namespace sluice::train
