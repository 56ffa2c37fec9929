// metrics.h - metrics.jsonl: what a run measured as it went, an object a line.
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
  // Lines of steps after `step` go: a resumed run takes these steps again. They are those of a run
  // that ended without a checkpoint.
  static Result<Metrics> open(const std::filesystem::path& path, std::int64_t step);

  // At most about 500 lines for each tenfold of a run's time.
  void write(const StepReport& report);
  void write(const EvaluationReport& report);
  // Whether all that was written has been.
  Status status() const;

 private:
  Metrics(std::filesystem::path path, std::ofstream file)
      : path_{std::move(path)}, file_{std::move(file)} {}

  std::filesystem::path path_;
  std::ofstream file_;
  double next_s_ = 0;  // when the next step is worth a line
};

}  // namespace sluice::train
