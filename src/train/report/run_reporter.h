// run_reporter.h - reports the progress of a run to TrainingEvents and in the run folder.
//
// run.json has settings, versions, commit, data and class names from the first step on; at the end
// of the run the summary is added. metrics.h describes metrics.jsonl. Only the reporter of rank 0
// does anything. If a file cannot be written after training has begun, a note reports that, and
// training goes on.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "sluice/status.h"
#include "train/loop/trainer.h"
#include "train/report/metrics.h"

namespace sluice::train {

// Thread-safety: one thread at a time.
class RunReporter {
 public:
  // `options` and `events` must outlive it; `events` may be null.
  RunReporter(const TrainerOptions& options, TrainingEvents* events, bool is_rank_zero);
  RunReporter(const RunReporter&) = delete;
  RunReporter& operator=(const RunReporter&) = delete;

  Status begin(const StartUp& start_up);
  void stepped(const StepReport& report);
  void evaluating(std::int64_t done, std::int64_t samples);
  void evaluated(const EvaluationReport& report);
  void checkpointed(const CheckpointReport& report);
  void note(const std::string& sentence);
  void end(const TrainingSummary& summary);

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  bool writes_files() const { return is_rank_zero_ && !options_.run_folder.empty(); }
  void check_metrics();

  const TrainerOptions& options_;
  TrainingEvents no_events_;
  TrainingEvents* events_;
  bool is_rank_zero_;
  std::optional<Metrics> metrics_;
  std::vector<std::string> notes_;
};

}  // namespace sluice::train
