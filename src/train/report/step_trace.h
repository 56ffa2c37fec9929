// step_trace.h - timeline.json: some steps of a run in detail, for chrome://tracing and Perfetto.
#pragma once

#include <cstdint>
#include <filesystem>

#include "sluice/analysis/timeline.h"
#include "sluice/status.h"
#include "train/loop/training_step.h"

namespace sluice::train {

class StepTrace {
 public:
  static constexpr std::int64_t kAfter = 10;  // the first steps are not like others
  static constexpr std::int64_t kSteps = 8;

  // Of a run of so many steps; a short one is shown from its middle on. `step` must outlive it.
  StepTrace(TrainingStep& step, std::int64_t steps);

  // Before step `number`, counted from this run's first.
  void before(std::int64_t number);

 private:
  TrainingStep& step_;
  std::int64_t first_;
};

Status write_trace(const std::filesystem::path& path, const Timeline& timeline, int rank);

}  // namespace sluice::train
