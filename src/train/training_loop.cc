#include "train/training_loop.h"

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <utility>

#include "train/evaluation.h"
#include "train/loading.h"

namespace sluice {
namespace {

constexpr std::int64_t kMostNotFinite = 20;  // steps in a row

}  // namespace

TrainingLoop::TrainingLoop(const TrainingTerms& terms, Workshop workshop)
    : terms_{terms},
      recipe_{terms.options.recipe},
      workshop_{std::move(workshop)},
      journal_{terms.options, terms.events, workshop_.communicator.rank() == 0},
      steps_{workshop_, recipe_},
      pulse_{workshop_.communicator},
      numbers_{workshop_.plan} {
  summary_.ranks = workshop_.communicator.size();
  summary_.target = terms.options.target > 0 ? terms.options.target : recipe_.target;
}

Result<TrainingSummary> TrainingLoop::run() {
  if (Status status = prepare(); !status.ok()) return status;
  const std::int64_t limit = terms_.options.step_limit;
  while (!end_) {
    if (step_ == workshop_.plan.steps) {
      end_ = TrainingEnd::Done;
    } else if (limit > 0 && step_ >= limit) {
      end_ = TrainingEnd::StepLimit;
    } else if (Status status = take_step(); !status.ok()) {
      return status;
    }
  }
  // A run that was complete when it was resumed still says how good it is.
  if (end_ == TrainingEnd::Done && !summary_.last) {
    if (Status status = evaluate(); !status.ok()) return status;
  }
  if (Status status = save(); !status.ok()) return status;
  conclude();
  return summary_;
}

Status TrainingLoop::prepare() {
  const TrainingPlan& plan = workshop_.plan;
  sampler_ = std::make_unique<Sampler>(plan, workshop_.communicator.rank(), recipe_.seed);
  loader_ = std::make_unique<Loader>(
      *workshop_.data.train,
      training_loading(recipe_, workshop_.data, terms_.options.loader_threads),
      [this](std::int64_t number) {
        const BatchPlace place = numbers_.place_of(number);
        return sampler_->samples(place.step, place.part);
      },
      numbers_.first_of(step_), numbers_.first_of(plan.steps));
  trace_ = std::make_unique<StepTrace>(steps_, plan.steps - step_);
  first_step_ = workshop_.start_up.first_step = step_;
  workshop_.start_up.total_s = elapsed_s();
  if (Status status = journal_.begin(workshop_.start_up); !status.ok()) return status;
  for (const std::string& note : workshop_.notes) journal_.note(note);
  meter_.begin();
  return {};
}

Status TrainingLoop::take_step() {
  trace_->before(step_ - first_step_);
  Result<StepOutcome> taken = steps_.take(step_, *loader_);
  if (!taken.ok()) return taken.status();
  const StepOutcome& outcome = taken.value();
  ++step_;
  summary_.rate = outcome.rate;
  summary_.skipped_steps += outcome.skipped ? 1 : 0;
  if (!outcome.warning.empty()) journal_.note(outcome.warning);
  not_finite_ = std::isfinite(outcome.loss) ? 0 : not_finite_ + 1;

  const StepSpan span = meter_.end(outcome.images, outcome.waited_s);
  const std::optional<Beat> beat =
      pulse_.step({.steps = 1,
                   .images = static_cast<double>(span.images),
                   .loss = outcome.loss,
                   .seconds = span.seconds,
                   .waited_s = span.waited_s,
                   .told_to_stop = terms_.stop.load(std::memory_order_relaxed) != 0 ? 1.0 : 0.0,
                   .hopeless = not_finite_ >= kMostNotFinite ? 1.0 : 0.0});
  if (beat) hear(*beat);
  return between_steps();
}

// What all ranks hear, at the same step.
void TrainingLoop::hear(const Beat& beat) {
  if (beat.steps == 0) return;
  const double step_s = beat.seconds / beat.steps;
  summary_.loss = beat.loss / beat.steps;
  if (beat.told_to_stop > 0) end_ = TrainingEnd::Signal;
  if (beat.hopeless > 0) end_ = TrainingEnd::NotFinite;
  journal_.stepped({.step = step_,
                    .steps = workshop_.plan.steps,
                    .epoch = epoch(),
                    .epochs = workshop_.start_up.epochs,
                    .rate = summary_.rate,
                    .loss = summary_.loss,
                    .images_per_s = beat.images / beat.seconds * summary_.ranks,
                    .exposed_comm_fraction = beat.waited_s / beat.seconds,
                    .elapsed_s = elapsed_s(),
                    .left_s = step_s * static_cast<double>(workshop_.plan.steps - step_)});
}

Status TrainingLoop::between_steps() {
  if (step_ == workshop_.plan.steps) steps_.flush();
  if (end_) return {};
  if (evaluates_after(recipe_, workshop_.plan, step_ - 1)) {
    if (Status status = evaluate(); !status.ok()) return status;
  }
  if (!end_ && checkpoints_after(recipe_, workshop_.plan, step_ - 1)) {
    if (Status status = save(); !status.ok()) return status;
  }
  return {};
}

Status TrainingLoop::evaluate() {
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t samples = workshop_.start_up.validation_samples;
  Result<EvaluationCounts> counted =
      sluice::evaluate({.network = *workshop_.network,
                        .data = workshop_.data,
                        .recipe = recipe_,
                        .batch = recipe_.batch,
                        .loader_threads = terms_.options.loader_threads,
                        .tell =
                            [&](std::int64_t done) {
                              journal_.evaluating(done * summary_.ranks, samples);
                            }},
                       workshop_.communicator);
  if (!counted.ok()) return counted.status();
  const EvaluationCounts& counts = counted.value();
  EvaluationReport report{.step = step_,
                          .epoch = epoch(),
                          .samples = counts.samples,
                          .right = counts.right,
                          .accuracy = counts.accuracy(),
                          .loss = counts.mean_loss(),
                          .seconds = seconds_since(begin),
                          .elapsed_s = elapsed_s()};
  if (workshop_.data.classes.size() >= kClassesForTop5) report.top5 = counts.top5();
  report.best = !summary_.best || report.accuracy > summary_.best->accuracy;
  if (report.best) summary_.best = report;
  summary_.last = report;
  summary_.evaluate_s += report.seconds;
  if (summary_.target > 0 && report.accuracy >= summary_.target && !summary_.target_met) {
    summary_.target_met = true;
    summary_.seconds_to_target = report.elapsed_s;
    end_ = TrainingEnd::Target;
  }
  journal_.evaluated(report);
  meter_.begin();
  return {};
}

Status TrainingLoop::save() {
  return {};
}

void TrainingLoop::conclude() {
  Communicator& communicator = workshop_.communicator;
  hear(pulse_.finish());
  const StepSpan& steady = meter_.steady();
  std::array<double, 3> sums{static_cast<double>(steady.images), steady.seconds, steady.waited_s};
  communicator.all_reduce(sums.data(), sums.size(), {.type = DataType::F64}).wait();
  if (sums[1] > 0) {
    summary_.images_per_s = sums[0] / sums[1] * summary_.ranks;
    summary_.exposed_comm_fraction = sums[2] / sums[1];
  }
  summary_.end = *end_;
  if (end_ == TrainingEnd::Signal) {
    std::int32_t signal = terms_.stop.load(std::memory_order_relaxed);
    communicator.all_reduce(&signal, 1, {.type = DataType::I32, .op = ReduceOp::Max}).wait();
    summary_.signal = signal;
  }
  if (end_ == TrainingEnd::NotFinite) {
    summary_.why = fmt::format(
        "the loss was not finite for {} steps, up to step {}: the rate, {:.3g}, may be too high for "
        "this batch, or the warm-up too short",
        kMostNotFinite, step_, summary_.rate);
  }
  summary_.steps = step_;
  summary_.epochs = epoch();
  if (summary_.last) {
    summary_.accuracy = summary_.last->accuracy;
    summary_.top5 = summary_.last->top5;
  }
  summary_.start_up = workshop_.start_up;
  summary_.startup_s = workshop_.start_up.total_s;
  summary_.train_s = meter_.all().seconds;
  summary_.broken_images = loader_->skipped();
  summary_.notes = journal_.notes();
  summary_.total_s = elapsed_s();
  journal_.end(summary_);
}

}  // namespace sluice
