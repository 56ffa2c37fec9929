// run_reporter.h - what a run tells: to whoever listens, and to its folder (run.json,
// metrics.jsonl).
//
// Only rank 0's says anything. A file that cannot be written once training goes on is told as a
// note, and does not end it.
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
  // `options` and `events`, which may be null, must outlive it.
  RunReporter(const TrainerOptions& options, TrainingEvents* events, bool leads);

  Status begin(const StartUp& start_up);
  void stepped(const StepReport& report);
  void evaluating(std::int64_t done, std::int64_t samples);
  void evaluated(const EvaluationReport& report);
  void checkpointed(const CheckpointReport& report);
  void note(const std::string& sentence);
  void end(const TrainingSummary& summary);

  const std::vector<std::string>& notes() const { return notes_; }

 private:
  bool keeps() const { return leads_ && !options_.run_folder.empty(); }
  void watch_metrics();

  const TrainerOptions& options_;
  TrainingEvents* events_;
  bool leads_;
  StartUp start_up_;
  std::optional<Metrics> metrics_;
  std::vector<std::string> notes_;
};

}  // namespace sluice::train
