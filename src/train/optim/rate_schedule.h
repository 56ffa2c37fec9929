// rate_schedule.h - the learning rate of a step. Steps count from 0.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

namespace sluice {

// The rate rises in equal parts from `from` times its value, at step 0, and has its value from step
// `steps` on.
struct WarmUp {
  std::int64_t steps = 0;
  double from = 0;
};

struct ConstantRate {};

// From step `step` on the rate is `factor` times its base. In order of steps.
struct RateDrop {
  std::int64_t step = 0;
  double factor = 1;
};
struct SteppedRate {
  std::vector<RateDrop> drops;
};

// Falls from the base to `end` times the base: base ((1 - end) (1 - p)^power + end), where p is the
// part of `steps` that has passed since the warm-up.
struct PolynomialRate {
  std::int64_t steps = 1;
  double power = 1;
  double end = 0;
};

struct RateSchedule {
  double base = 0.1;
  WarmUp warm_up;  // multiplies what follows
  std::variant<ConstantRate, SteppedRate, PolynomialRate> decay;
};

double rate_at(const RateSchedule& schedule, std::int64_t step);

}  // namespace sluice
