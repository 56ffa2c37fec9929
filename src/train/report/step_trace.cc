#include "train/report/step_trace.h"

#include <algorithm>
#include <fstream>

#include "base/format.h"

namespace sluice::train {

StepTrace::StepTrace(TrainingStep& step, std::int64_t steps)
    : step_{step}, first_{std::min(kAfter, steps / 2)} {}

void StepTrace::before(std::int64_t number) {
  if (number == first_) step_.trace(true);
  if (number == first_ + kSteps) step_.trace(false);
}

Status write_trace(const std::filesystem::path& path, const Timeline& timeline, int rank) {
  std::ofstream file{path, std::ios::trunc};
  if ((file << timeline.chrome_trace(rank)).flush()) return {};
  return {Code::InvalidInput, base::format("{} cannot be written", path.string())};
}

}  // namespace sluice::train
