#include "train/optim/rate_schedule.h"

#include <algorithm>
#include <cmath>

namespace sluice {
namespace {

double part(std::int64_t of, std::int64_t whole) {
  return static_cast<double>(of) / static_cast<double>(whole);
}

double warm_up_factor(const WarmUp& warm_up, std::int64_t step) {
  if (step >= warm_up.steps) return 1;
  return warm_up.from + (1 - warm_up.from) * part(step, warm_up.steps);
}

struct DecayFactor {
  std::int64_t step;
  std::int64_t warm_up_steps;

  double operator()(const ConstantRate&) const { return 1; }

  double operator()(const SteppedRate& stepped) const {
    double factor = 1;
    for (const RateDrop& drop : stepped.drops) {
      if (step >= drop.step) factor = drop.factor;
    }
    return factor;
  }

  double operator()(const PolynomialRate& polynomial) const {
    const std::int64_t passed = std::clamp(step - warm_up_steps, std::int64_t{0}, polynomial.steps);
    const double left = 1 - part(passed, polynomial.steps);
    return (1 - polynomial.end) * std::pow(left, polynomial.power) + polynomial.end;
  }
};

}  // namespace

double rate_at(const RateSchedule& schedule, std::int64_t step) {
  return schedule.base * warm_up_factor(schedule.warm_up, step) *
         std::visit(DecayFactor{step, schedule.warm_up.steps}, schedule.decay);
}

}  // namespace sluice
