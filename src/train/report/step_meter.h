// step_meter.h - how long this rank's steps take, and how much of that is waiting for
// communication.
//
// A step lasts from the end of the one before, so that what loading makes training wait for counts;
// pauses (an evaluation, a checkpoint) are cut out with begin().
#pragma once

#include <chrono>
#include <cstdint>

namespace sluice::train {

struct StepSpan {
  std::int64_t steps = 0;
  std::int64_t images = 0;  // this rank's
  double seconds = 0;
  double waited_s = 0;

  StepSpan& operator+=(const StepSpan& other);
};

class StepMeter {
 public:
  // Steps that are too early to tell the speed by: memory is laid out, kernels are chosen.
  static constexpr std::int64_t kWarmUp = 10;

  // A step begins now.
  void begin();
  // It ends, and the next begins. Returns it.
  StepSpan end(std::int64_t images, double waited_s);

  const StepSpan& all() const { return all_; }
  // Without the warm-up; where there was nothing more, all.
  const StepSpan& steady() const { return steady_.steps > 0 ? steady_ : all_; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  StepSpan all_;
  StepSpan steady_;
};

}  // namespace sluice::train
