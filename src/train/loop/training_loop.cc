#include "train/loop/training_loop.h"

#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "libtorch/parameters.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/initial_weights.h"
#include "train/checkpoint/resumption.h"
#include "train/loop/averaged_statistics.h"
#include "train/loop/evaluation.h"
#include "train/report/gradient_traffic.h"
#include "train/report/process_start.h"

namespace sluice::train {
namespace {

constexpr std::int64_t kMostNotFinite = 20;  // steps in a row
constexpr std::size_t kLastLosses = 10;      // that the summary's loss is the mean of

std::uint64_t hash_of_weights(const Model& network) {
  libtorch::NamedTensors weights;
  for (const auto& item : network.named_parameters())
    weights.emplace_back(item.key(), item.value());
  return libtorch::hash_of(weights);
}

}  // namespace

TrainingLoop::TrainingLoop(const LoopContext& terms, TrainingSetup workshop)
    : terms_{terms},
      workshop_{std::move(workshop)},
      recipe_{workshop_.recipe},
      journal_{terms.options, terms.events, workshop_.communicator.rank() == 0},
      steps_{workshop_, recipe_},
      pulse_{workshop_.communicator} {
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
  hear(pulse_.finish());
  // A run that was complete when it was resumed still says how good it is.
  if (end_ == TrainingEnd::Done && !summary_.last) {
    if (Status status = evaluate(); !status.ok()) return status;
  }
  if (end_ != TrainingEnd::NotFinite) {
    if (Status status = save(); !status.ok()) return status;
  }
  keep_results();
  conclude();
  return summary_;
}

Status TrainingLoop::prepare() {
  const recipe::EpochTable& plan = workshop_.plan;
  const std::filesystem::path& folder = terms_.options.run_folder;
  step_ = first_step_ = workshop_.start_up.first_step;
  if (workshop_.resumed) {
    saved_step_ = step_;
    const TrainingState& then = *workshop_.resumed;
    if (then.best_accuracy >= 0)
      summary_.best = EvaluationReport{.step = then.best_step,
                                       .epoch = plan.epoch_at(then.best_step),
                                       .accuracy = then.best_accuracy};
  }
  if (!folder.empty()) {
    writer_ = std::make_unique<CheckpointWriter>(
        CheckpointWriter::Options{.folder = folder / kCheckpoints,
                                  .rank = workshop_.communicator.rank(),
                                  .ranks = workshop_.communicator.size(),
                                  .run = workshop_.run});
  }
  batches_ = std::make_unique<TrainingBatches>(
      TrainingBatchesOptions{.recipe = recipe_,
                             .plan = plan,
                             .data = workshop_.data,
                             .rank = workshop_.communicator.rank(),
                             .loader_threads = terms_.options.loader_threads,
                             .first_step = step_});
  trace_ = std::make_unique<StepTrace>(steps_, plan.steps - step_);
  workshop_.start_up.total_s = elapsed_s();
  workshop_.start_up.processor_s = processor_s();
  if (Status status = journal_.begin(workshop_.start_up); !status.ok()) return status;
  for (const std::string& note : workshop_.notes) journal_.note(note);
  meter_.begin();
  return {};
}

Status TrainingLoop::take_step() {
  trace_->before(step_ - first_step_);
  Result<StepOutcome> taken = steps_.take(step_, *batches_);
  if (!taken.ok()) return taken.status();
  const StepOutcome& outcome = taken.value();
  ++step_;
  summary_.rate = outcome.rate;
  summary_.skipped_steps += outcome.skipped ? 1 : 0;
  if (!outcome.warning.empty()) journal_.note(outcome.warning);
  not_finite_ = std::isfinite(outcome.loss) ? 0 : not_finite_ + 1;
  last_losses_.push_back(outcome.loss);
  if (last_losses_.size() > kLastLosses) last_losses_.pop_front();

  const StepSpan span = meter_.end(outcome.images, outcome.waited_s);
  const std::optional<StepTotals> beat =
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
void TrainingLoop::hear(const StepTotals& beat) {
  if (beat.steps == 0) return;
  const double step_s = beat.seconds / beat.steps;
  if (beat.told_to_stop > 0 && !end_) end_ = TrainingEnd::Signal;
  if (beat.hopeless > 0) end_ = TrainingEnd::NotFinite;
  journal_.stepped({.step = step_,
                    .steps = workshop_.plan.steps,
                    .epoch = epoch(),
                    .epochs = workshop_.start_up.epochs,
                    .rate = summary_.rate,
                    .loss = beat.loss / beat.steps,
                    .images_per_s = beat.images / beat.seconds * summary_.ranks,
                    .exposed_comm_fraction = beat.waited_s / beat.seconds,
                    .elapsed_s = elapsed_s(),
                    .left_s = step_s * static_cast<double>(workshop_.plan.steps - step_)});
}

Status TrainingLoop::between_steps() {
  if (step_ == workshop_.plan.steps) steps_.flush();
  if (end_) return {};
  if (recipe::evaluates_after(recipe_, workshop_.plan, step_ - 1)) {
    if (Status status = evaluate(); !status.ok()) return status;
  }
  if (!end_ && recipe::checkpoints_after(recipe_, workshop_.plan, step_ - 1)) {
    if (Status status = save(); !status.ok()) return status;
  }
  return {};
}

Status TrainingLoop::evaluate() {
  const auto begin = std::chrono::steady_clock::now();
  const std::int64_t samples = workshop_.start_up.validation_samples;
  Result<EvaluationCounts> counted = sluice::train::evaluate(
      {.network = *workshop_.network,
       .data = workshop_.data,
       .recipe = recipe_,
       .batch = recipe_.batch,
       .loader_threads = terms_.options.loader_threads,
       .tell = [&](std::int64_t done) { journal_.evaluating(done * summary_.ranks, samples); }},
      workshop_.communicator);
  if (!counted.ok()) return counted.status();
  EvaluationReport report = report_of(counted.value(), workshop_.data);
  report.step = step_;
  report.epoch = epoch();
  report.seconds = seconds_since(begin);
  report.elapsed_s = elapsed_s();
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

// Whether what this step has led to is worth keeping, at every rank.
bool TrainingLoop::healthy() {
  std::int32_t finite = not_finite_ == 0 ? 1 : 0;
  for (const torch::Tensor& weights : workshop_.network->parameters())
    finite = finite != 0 && weights.isfinite().all().item<bool>() ? 1 : 0;
  workshop_.communicator.all_reduce(&finite, 1, {.type = DataType::I32, .op = ReduceOp::Min})
      .wait();
  return finite != 0;
}

// A checkpoint that cannot be written is no reason to end: the disk may have room again later.
Status TrainingLoop::save() {
  if (!writer_ || saved_step_ == step_) return {};
  const auto begin = std::chrono::steady_clock::now();
  if (!healthy()) {
    journal_.note(
        base::format("step {} has no checkpoint: its loss or weights are not finite", step_));
    return {};
  }
  TrainingState state = state_at(step_, recipe_, workshop_.plan, workshop_.data);
  if (summary_.last && summary_.last->step == step_) state.accuracy = summary_.last->accuracy;
  if (summary_.best) {
    state.best_accuracy = summary_.best->accuracy;
    state.best_step = summary_.best->step;
  }
  const Status status = writer_->save(state, {.network = *workshop_.network,
                                              .optimizer = *workshop_.optimizer,
                                              .parallel = *workshop_.parallel});
  saved_step_ = step_;
  if (!status.ok()) journal_.note(status.message());
  const double seconds = seconds_since(begin);
  summary_.checkpoint_s += seconds;
  journal_.checkpointed({.step = step_,
                         .epoch = epoch(),
                         .path = checkpoint_path(terms_.options.run_folder / kCheckpoints, step_),
                         .seconds = seconds});
  meter_.begin();
  return {};
}

// What others can use: the weights, with statistics that are everybody's; and the steps traced.
void TrainingLoop::keep_results() {
  if (!writer_) return;
  const AveragedStatistics averaged{*workshop_.network, workshop_.communicator};
  const Status written = writer_->finish();
  if (!written.ok()) journal_.note(written.message());
  const int rank = workshop_.communicator.rank();
  if (rank != 0) return;
  const std::filesystem::path& folder = terms_.options.run_folder;
  const Status traced = write_trace(folder / "timeline.json", *workshop_.traced, rank);
  if (!traced.ok()) journal_.note(traced.message());
  if (end_ == TrainingEnd::NotFinite) return;
  const Status exported = export_weights(*workshop_.network, folder / "weights.pt");
  if (!exported.ok()) journal_.note(exported.message());
}

void TrainingLoop::conclude() {
  Communicator& communicator = workshop_.communicator;
  const StepSpan& steady = meter_.steady();
  std::array<double, 4> sums{static_cast<double>(steady.images), steady.seconds, steady.waited_s,
                             std::accumulate(last_losses_.begin(), last_losses_.end(), 0.0)};
  communicator.all_reduce(sums.data(), sums.size(), {.type = DataType::F64}).wait();
  if (sums[1] > 0) {
    summary_.images_per_s = sums[0] / sums[1] * summary_.ranks;
    summary_.exposed_comm_fraction = sums[2] / sums[1];
  }
  if (!last_losses_.empty())
    summary_.loss = sums[3] / static_cast<double>(last_losses_.size()) / summary_.ranks;
  summary_.end = *end_;
  if (end_ == TrainingEnd::Signal) {
    std::int32_t signal = terms_.stop.load(std::memory_order_relaxed);
    communicator.all_reduce(&signal, 1, {.type = DataType::I32, .op = ReduceOp::Max}).wait();
    summary_.signal = signal;
  }
  if (end_ == TrainingEnd::NotFinite) {
    summary_.why = base::format(
        "the loss was not finite for {} steps, up to step {}: the rate, {:.3g}, may be too high "
        "for "
        "this batch, or the warm-up too short",
        kMostNotFinite, step_, summary_.rate);
  }
  summary_.bytes_sent = gradient_bytes_sent(recipe_, workshop_.plan, *workshop_.network,
                                            communicator, first_step_, step_);
  summary_.weights_hash = hash_of_weights(*workshop_.network);
  summary_.steps = step_;
  summary_.epochs = epoch();
  if (summary_.last) {
    summary_.accuracy = summary_.last->accuracy;
    summary_.top5 = summary_.last->top5;
  }
  summary_.start_up = workshop_.start_up;
  summary_.startup_s = workshop_.start_up.total_s;
  summary_.train_s = meter_.all().seconds;
  summary_.broken_images = batches_->skipped();
  summary_.notes = journal_.notes();
  summary_.total_s = elapsed_s();
  journal_.end(summary_);
}

}  // namespace sluice::train
