#include "train/report/run_reporter.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "base/format.h"
#include "train/report/run_record.h"

namespace sluice::train {

RunReporter::RunReporter(const TrainerOptions& options, TrainingEvents* events, bool leads)
    : options_{options}, events_{leads ? events : nullptr}, leads_{leads} {}

Status RunReporter::begin(const StartUp& start_up) {
  start_up_ = start_up;
  if (keeps()) {
    const std::filesystem::path& folder = options_.run_folder;
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      return {Code::InvalidInput,
              base::format("{} cannot be made: {}", folder.string(), error.message())};
    }
    Result<Metrics> metrics = Metrics::open(folder / "metrics.jsonl", start_up.first_step);
    if (!metrics.ok()) return metrics.status();
    metrics_ = std::move(metrics).value();
    Status status = write_run_record(folder / "run.json", options_, start_up, nullptr);
    if (!status.ok()) return status;
  }
  if (events_ != nullptr) events_->started(start_up);
  return {};
}

void RunReporter::watch_metrics() {
  const Status status = metrics_->status();
  if (status.ok()) return;
  metrics_.reset();
  note(base::format("{}: no more metrics are kept", status.message()));
}

void RunReporter::stepped(const StepReport& report) {
  if (events_ != nullptr) events_->stepped(report);
  if (!metrics_) return;
  metrics_->write(report);
  watch_metrics();
}

void RunReporter::evaluating(std::int64_t done, std::int64_t samples) {
  if (events_ != nullptr) events_->evaluating(done, samples);
}

void RunReporter::evaluated(const EvaluationReport& report) {
  if (events_ != nullptr) events_->evaluated(report);
  if (!metrics_) return;
  metrics_->write(report);
  watch_metrics();
}

void RunReporter::checkpointed(const CheckpointReport& report) {
  if (events_ != nullptr) events_->checkpointed(report);
}

void RunReporter::note(const std::string& sentence) {
  if (!leads_) return;
  notes_.push_back(sentence);
  if (events_ != nullptr) events_->note(sentence);
}

void RunReporter::end(const TrainingSummary& summary) {
  if (!keeps()) return;
  const Status status =
      write_run_record(options_.run_folder / "run.json", options_, start_up_, &summary);
  if (!status.ok()) note(status.message());
}

}  // namespace sluice::train
