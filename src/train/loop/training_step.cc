#include "train/loop/training_step.h"

#include <algorithm>

#include "base/random.h"
#include "gradient/reducer.h"
#include "train/models/batch_norm.h"

namespace sluice::train {

TrainingStep::TrainingStep(TrainingSetup& setup, const recipe::Recipe& recipe)
    : setup_{setup},
      recipe_{recipe},
      rates_{recipe::learning_rate_schedule(recipe, setup.epoch_table)},
      warm_up_{dynamic_cast<RmspropWarmUp*>(setup.optimizer.get())},
      timeline_{setup.waits.get()} {
  trace(false);
}

void TrainingStep::trace(bool on) {
  timeline_ = on ? setup_.traced.get() : setup_.waits.get();
  setup_.parallel->reducer().set_timeline(timeline_);
}

void TrainingStep::trace_some(std::int64_t steps) {
  first_traced_ = taken_ + std::min(kTracedAfter, steps / 2);
}

template <class Work>
void TrainingStep::timed(const char* name, const Work& work) {
  const std::int64_t begin = timeline_->now_ns();
  work();
  timeline_->add({.name = name, .begin_ns = begin, .end_ns = timeline_->now_ns()});
}

double TrainingStep::waited_s() const {
  double seconds = timeline_->waited_s();
  if (recipe_.batch_norm == recipe::BatchNormMode::Synchronised) {
    seconds += seconds_waited(*setup_.network);
  }
  return seconds;
}

// Returns what this batch adds to the loss of the step.
double TrainingStep::backward(const data::Batch& batch, const recipe::EpochRow& epoch, bool last) {
  const auto [images, labels] = tensors_over(batch);
  const double part = static_cast<double>(batch.count) /
                      (static_cast<double>(epoch.batch) * static_cast<double>(epoch.accumulate));
  torch::Tensor loss;
  timed("forward", [&, &images = images, &labels = labels] {
    loss = smoothed_cross_entropy(setup_.network->forward(images), labels, recipe_.label_smoothing);
  });
  const double factor = part * setup_.parallel->loss_scale();
  const torch::Tensor scaled = factor == 1 ? loss : loss * factor;
  timed("backward", [&] {
    if (last) {
      scaled.backward();
    } else {
      const auto pause = setup_.parallel->no_sync();
      scaled.backward();
    }
  });
  return loss.item<double>() * part;
}

Result<StepOutcome> TrainingStep::take(std::int64_t step, TrainingBatches& batches) {
  if (first_traced_ >= 0 && taken_ == first_traced_) trace(true);
  if (first_traced_ >= 0 && taken_ == first_traced_ + kTracedSteps) trace(false);
  ++taken_;
  const recipe::EpochRow& epoch = setup_.epoch_table.epoch_of(step);
  const double epoch_now = setup_.epoch_table.epoch_at(step);
  StepOutcome outcome{.totals = {.steps = 1}, .rate = recipe::learning_rate_at(rates_, epoch_now)};
  setup_.optimizer->zero_grad(true);
  setup_.network->seed_dropout(
      base::mixed({recipe_.seed, static_cast<std::uint64_t>(step),
                   static_cast<std::uint64_t>(setup_.communicator.rank())}));
  const double waited_before = waited_s();
  for (int i = 0; i < epoch.accumulate; ++i) {
    Result<const data::Batch*> batch = batches.next();
    if (!batch.ok()) return batch.status();
    outcome.totals.loss += backward(*batch.value(), epoch, i + 1 == epoch.accumulate);
    outcome.totals.images += static_cast<double>(batch.value()->count);
  }
  FinishedStep finished = setup_.parallel->finish();
  outcome.totals.waited_s = waited_s() - waited_before;
  outcome.skipped = finished.skipped;
  outcome.warning = std::move(finished.warning);
  timed("optimizer", [&] {
    setup_.optimizer->set_lr(outcome.rate);
    if (warm_up_ != nullptr) warm_up_->set_epoch(epoch_now);
    setup_.optimizer->step();
  });
  return outcome;
}

void TrainingStep::flush() {
  if (setup_.parallel->flush().empty) return;
  setup_.optimizer->step();
  setup_.optimizer->zero_grad(true);
}

}  // namespace sluice::train
