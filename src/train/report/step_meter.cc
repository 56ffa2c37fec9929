#include "train/report/step_meter.h"

namespace sluice::train {

StepSpan& StepSpan::operator+=(const StepSpan& other) {
  steps += other.steps;
  images += other.images;
  seconds += other.seconds;
  waited_s += other.waited_s;
  return *this;
}

void StepMeter::begin() { begin_ = std::chrono::steady_clock::now(); }

StepSpan StepMeter::end(std::int64_t images, double waited_s) {
  const auto now = std::chrono::steady_clock::now();
  const StepSpan step{.steps = 1,
                      .images = images,
                      .seconds = std::chrono::duration<double>(now - begin_).count(),
                      .waited_s = waited_s};
  begin_ = now;
  if (all_.steps >= kWarmUp) steady_ += step;
  all_ += step;
  return step;
}

}  // namespace sluice::train
