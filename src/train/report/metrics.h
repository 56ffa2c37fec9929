// metrics.h - metrics.jsonl: the measurements of a run, one JSON object in each line.
//
//   {"kind": "step", "step": 120, "epoch": 0.77, "loss": 1.93, "rate": 0.1, ...}
//   {"kind": "evaluation", "step": 156, "epoch": 1.0, "accuracy": 61.2, ...}
//
// A number that is not finite is null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>

#include "sluice/status.h"
#include "train/loop/trainer.h"

namespace sluice::train {

// Thread-safety: one thread at a time.
class Metrics {
 public:
  // Removes the lines of steps after `step`: the run wrote them after its last checkpoint, and the
  // resumed run takes these steps again.
  static Result<Metrics> open(const std::filesystem::path& path, std::int64_t step);

  // Leaves out reports: while the elapsed time grows tenfold, it writes at most about 500 lines.
  void write(const StepReport& report);
  void write(const EvaluationReport& report);
  // Is an error if a line could not be written.
  Status status() const;

 private:
  Metrics(std::filesystem::path path, std::ofstream file)
      : path_{std::move(path)}, file_{std::move(file)} {}

  std::filesystem::path path_;
  std::ofstream file_;
  double next_s_ = 0;  // the earliest time of the next line for a step
};

}  // namespace sluice::train
