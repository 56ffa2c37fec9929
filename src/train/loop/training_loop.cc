#include "train/loop/training_loop.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <numeric>
#include <utility>

#include "base/format.h"
#include "gradient/wire/wire.h"
#include "libtorch/parameters.h"
#include "sluice/algorithms.h"
#include "train/checkpoint/checkpoint_folder.h"
#include "train/checkpoint/resumption.h"
#include "train/loop/evaluation.h"
#include "train/models/batch_norm.h"

namespace sluice::train {
namespace {

constexpr std::int64_t kMostNotFinite = 20;  // steps in a row
constexpr std::size_t kLastLosses = 10;      // averaged for the summary

std::uint64_t hash_of_weights(const Model& network) {
  libtorch::NamedTensors weights;
  for (const auto& item : network.named_parameters())
    weights.emplace_back(item.key(), item.value());
  return libtorch::hash_of(weights);
}

Status write_timeline(const std::filesystem::path& path, const Timeline& timeline, int rank) {
  std::ofstream file{path, std::ios::trunc};
  if ((file << timeline.chrome_trace(rank)).flush()) return {};
  return {Code::InvalidInput, base::format("{} cannot be written", path.string())};
}

// Returns the bytes that this rank sends in an all_reduce, divided by the bytes of the buffer.
double sent_share(const Communicator& communicator, std::size_t bytes,
                  const std::string& algorithm_name) {
  if (communicator.size() == 1) return 0;
  const std::string_view name =
      communicator.algorithm_for(Collective::AllReduce, bytes, {.algorithm = algorithm_name});
  const Result<const Algorithm*> algorithm = find_algorithm(name);
  if (!algorithm.ok()) return 0;
  const Result<Shape> shape = complete_shape(*algorithm.value(), {.ranks = communicator.size()});
  return shape.ok() ? algorithm.value()->sent(shape.value(), communicator.rank()).value() : 0;
}

// Returns the number of whole steps that sparsity saves: the sum of the sparsity of steps first ..
// last - 1.
double steps_not_sent(const SparseOptions& sparse, std::int64_t first, std::int64_t last) {
  double steps = 0;
  for (std::int64_t step = std::max(first, sparse.dense_steps); step < last; ++step) {
    const auto into = static_cast<double>(step - sparse.dense_steps);
    steps += into >= static_cast<double>(sparse.ramp_steps)
                 ? 1
                 : into / static_cast<double>(sparse.ramp_steps);
  }
  return steps * sparse.sparsity;
}

// Returns the bytes of gradients that a rank sends in steps first .. last - 1, computed from sizes.
// Assumes full buckets, and the algorithm that a full bucket uses; a sparse step counts with its
// sparsity. Every rank must call it.
double gradient_bytes_sent(const recipe::Recipe& recipe, const recipe::EpochTable& epoch_table,
                           const Model& network, Communicator& communicator, std::int64_t first,
                           std::int64_t last) {
  const GradientOptions options = gradient_options(recipe, epoch_table);
  const bool narrow = gradient::agreed_wire(communicator, options) != WireType::F32;
  double dense = 0;   // elements that are always sent
  double sparse = 0;  // elements that a sparse step may leave out
  for (const torch::Tensor& parameter : network.parameters())
    (parameter.dim() < 2 ? dense : sparse) += static_cast<double>(parameter.numel());
  const auto steps = static_cast<double>(last - first);
  const double not_sent = recipe.sparsity > 0 ? steps_not_sent(options.sparse, first, last) : 0;
  const double width = narrow ? 2 : 4;
  const double bytes = width * (dense * steps + sparse * (steps - not_sent));
  const double step_bytes = width * (dense + sparse);
  const double bucket = options.double_buffering
                            ? step_bytes
                            : std::min(step_bytes, static_cast<double>(options.theta));
  return bytes * sent_share(communicator, static_cast<std::size_t>(bucket), options.algorithm);
}

}  // namespace

TrainingLoop::TrainingLoop(const LoopContext& context, TrainingSetup setup)
    : context_{context},
      setup_{std::move(setup)},
      recipe_{setup_.recipe},
      reporter_{context.options, context.events, setup_.communicator.rank() == 0},
      steps_{setup_, recipe_},
      exchange_{setup_.communicator} {
  summary_.ranks = setup_.communicator.size();
  summary_.target = context.options.target > 0 ? context.options.target : recipe_.target;
}

Result<TrainingSummary> TrainingLoop::run() {
  if (Status status = prepare(); !status.ok()) return status;
  const std::int64_t limit = context_.options.step_limit;
  while (!end_) {
    if (step_ == setup_.epoch_table.steps) {
      end_ = TrainingEnd::Done;
    } else if (limit > 0 && step_ >= limit) {
      end_ = TrainingEnd::StepLimit;
    } else if (Status status = take_step(); !status.ok()) {
      return status;
    }
  }
  apply_totals(exchange_.finish());
  // A run that is complete when it is resumed takes no step, but still reports its accuracy.
  if (end_ == TrainingEnd::Done && !summary_.last) {
    if (Status status = evaluate(); !status.ok()) return status;
  }
  if (end_ != TrainingEnd::NotFinite) {
    if (Status status = save(); !status.ok()) return status;
  }
  write_results();
  summarise();
  return summary_;
}

Status TrainingLoop::prepare() {
  const recipe::EpochTable& epoch_table = setup_.epoch_table;
  const std::filesystem::path& folder = context_.options.run_folder;
  step_ = first_step_ = setup_.start_up.first_step;
  if (setup_.resumed) {
    saved_step_ = step_;
    const TrainingState& saved = *setup_.resumed;
    if (saved.best_accuracy >= 0)
      summary_.best = EvaluationReport{.step = saved.best_step,
                                       .epoch = epoch_table.epoch_at(saved.best_step),
                                       .accuracy = saved.best_accuracy};
  }
  if (!folder.empty()) {
    writer_ = std::make_unique<CheckpointWriter>(
        CheckpointWriter::Options{.folder = folder / kCheckpoints,
                                  .rank = setup_.communicator.rank(),
                                  .ranks = setup_.communicator.size(),
                                  .run = setup_.run});
  }
  batches_ = std::make_unique<TrainingBatches>(
      TrainingBatchesOptions{.recipe = recipe_,
                             .epoch_table = epoch_table,
                             .data = setup_.data,
                             .rank = setup_.communicator.rank(),
                             .loader_threads = context_.options.loader_threads,
                             .first_step = step_});
  steps_.trace_some(epoch_table.steps - step_);
  setup_.start_up.total_s = elapsed_s();
  setup_.start_up.processor_s = processor_s();
  if (Status status = reporter_.begin(setup_.start_up); !status.ok()) return status;
  for (const std::string& note : setup_.notes) reporter_.note(note);
  meter_.begin();
  return {};
}

Status TrainingLoop::take_step() {
  Result<StepOutcome> taken = steps_.take(step_, *batches_);
  if (!taken.ok()) return taken.status();
  const StepOutcome& outcome = taken.value();
  StepTotals totals = outcome.totals;
  ++step_;
  summary_.rate = outcome.rate;
  summary_.skipped_steps += outcome.skipped ? 1 : 0;
  if (!outcome.warning.empty()) reporter_.note(outcome.warning);
  not_finite_ = std::isfinite(totals.loss) ? 0 : not_finite_ + 1;
  last_losses_.push_back(totals.loss);
  if (last_losses_.size() > kLastLosses) last_losses_.pop_front();

  meter_.end(totals);
  totals.stop_requested = context_.stop.load(std::memory_order_relaxed) != 0 ? 1.0 : 0.0;
  totals.diverged = not_finite_ >= kMostNotFinite ? 1.0 : 0.0;
  if (const std::optional<StepTotals> sum = exchange_.step(totals)) apply_totals(*sum);
  return between_steps();
}

// All ranks get the same totals after the same step.
void TrainingLoop::apply_totals(const StepTotals& totals) {
  if (totals.steps == 0) return;
  const double step_s = totals.seconds / totals.steps;
  if (totals.stop_requested > 0 && !end_) end_ = TrainingEnd::Signal;
  if (totals.diverged > 0) end_ = TrainingEnd::NotFinite;
  reporter_.stepped({.step = step_,
                     .steps = setup_.epoch_table.steps,
                     .epoch = epoch(),
                     .epochs = setup_.start_up.epochs,
                     .rate = summary_.rate,
                     .loss = totals.loss / totals.steps,
                     .images_per_s = totals.images / totals.seconds * summary_.ranks,
                     .exposed_comm_fraction = totals.waited_s / totals.seconds,
                     .elapsed_s = elapsed_s(),
                     .left_s = step_s * static_cast<double>(setup_.epoch_table.steps - step_)});
}

Status TrainingLoop::between_steps() {
  if (step_ == setup_.epoch_table.steps) steps_.flush();
  if (end_) return {};
  if (recipe::evaluates_after(recipe_, setup_.epoch_table, step_ - 1)) {
    if (Status status = evaluate(); !status.ok()) return status;
  }
  if (!end_ && recipe::checkpoints_after(recipe_, setup_.epoch_table, step_ - 1)) {
    if (Status status = save(); !status.ok()) return status;
  }
  return {};
}

Status TrainingLoop::evaluate() {
  const std::int64_t samples = setup_.start_up.validation_samples;
  Result<EvaluationReport> evaluated = sluice::train::evaluate(
      {.network = *setup_.network,
       .data = setup_.data,
       .recipe = recipe_,
       .batch = recipe_.batch,
       .loader_threads = context_.options.loader_threads,
       .report = [&](std::int64_t done) { reporter_.evaluating(done * summary_.ranks, samples); }},
      setup_.communicator);
  if (!evaluated.ok()) return evaluated.status();
  EvaluationReport& report = evaluated.value();
  report.step = step_;
  report.epoch = epoch();
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
  reporter_.evaluated(report);
  meter_.begin();
  return {};
}

// Returns whether the last loss and all weights are finite at every rank.
bool TrainingLoop::all_finite() {
  std::int32_t finite = not_finite_ == 0 ? 1 : 0;
  for (const torch::Tensor& weights : setup_.network->parameters())
    finite = finite != 0 && weights.isfinite().all().item<bool>() ? 1 : 0;
  setup_.communicator.all_reduce(std::span{&finite, 1}, {.op = ReduceOp::Min}).wait();
  return finite != 0;
}

// A checkpoint that cannot be written does not end the training: the disk may have room later.
Status TrainingLoop::save() {
  if (!writer_ || saved_step_ == step_) return {};
  const auto begin = std::chrono::steady_clock::now();
  if (!all_finite()) {
    reporter_.note(
        base::format("step {} has no checkpoint: its loss or weights are not finite", step_));
    return {};
  }
  TrainingState state = state_at(step_, recipe_, setup_.epoch_table, setup_.data);
  if (summary_.last && summary_.last->step == step_) state.accuracy = summary_.last->accuracy;
  if (summary_.best) {
    state.best_accuracy = summary_.best->accuracy;
    state.best_step = summary_.best->step;
  }
  const Status status = writer_->save(
      state,
      {.network = *setup_.network, .optimizer = *setup_.optimizer, .parallel = *setup_.parallel});
  saved_step_ = step_;
  if (!status.ok()) reporter_.note(status.message());
  const double seconds = seconds_since(begin);
  summary_.checkpoint_s += seconds;
  reporter_.checkpointed(
      {.step = step_,
       .epoch = epoch(),
       .path = checkpoint_path(context_.options.run_folder / kCheckpoints, step_),
       .seconds = seconds});
  meter_.begin();
  return {};
}

// Writes weights.pt, with the averaged statistics, and timeline.json.
void TrainingLoop::write_results() {
  if (!writer_) return;
  const AveragedStatistics averaged{*setup_.network, setup_.communicator};
  const Status written = writer_->finish();
  if (!written.ok()) reporter_.note(written.message());
  const int rank = setup_.communicator.rank();
  if (rank != 0) return;
  const std::filesystem::path& folder = context_.options.run_folder;
  const Status traced = write_timeline(folder / "timeline.json", *setup_.traced, rank);
  if (!traced.ok()) reporter_.note(traced.message());
  if (end_ == TrainingEnd::NotFinite) return;
  const Status exported = export_weights(*setup_.network, folder / "weights.pt");
  if (!exported.ok()) reporter_.note(exported.message());
}

void TrainingLoop::summarise() {
  Communicator& communicator = setup_.communicator;
  const StepTotals& steady = meter_.steady();
  std::array<double, 4> sums{steady.images, steady.seconds, steady.waited_s,
                             std::accumulate(last_losses_.begin(), last_losses_.end(), 0.0)};
  communicator.all_reduce(sums).wait();
  if (sums[1] > 0) {
    summary_.images_per_s = sums[0] / sums[1] * summary_.ranks;
    summary_.exposed_comm_fraction = sums[2] / sums[1];
  }
  if (!last_losses_.empty())
    summary_.loss = sums[3] / static_cast<double>(last_losses_.size()) / summary_.ranks;
  summary_.end = *end_;
  if (end_ == TrainingEnd::Signal) {
    std::int32_t signal = context_.stop.load(std::memory_order_relaxed);
    communicator.all_reduce(std::span{&signal, 1}, {.op = ReduceOp::Max}).wait();
    summary_.signal = signal;
  }
  if (end_ == TrainingEnd::NotFinite) {
    summary_.why = base::format(
        "the loss was not finite for {} steps, up to step {}: the rate, {:.3g}, may be too high "
        "for this batch, or the warm-up too short",
        kMostNotFinite, step_, summary_.rate);
  }
  summary_.bytes_sent = gradient_bytes_sent(recipe_, setup_.epoch_table, *setup_.network,
                                            communicator, first_step_, step_);
  summary_.weights_hash = hash_of_weights(*setup_.network);
  summary_.steps = step_;
  summary_.epochs = epoch();
  summary_.start_up = setup_.start_up;
  summary_.train_s = meter_.all().seconds;
  summary_.broken_images = batches_->skipped();
  summary_.notes = reporter_.notes();
  summary_.total_s = elapsed_s();
  reporter_.end(summary_);
}

}  // namespace sluice::train
