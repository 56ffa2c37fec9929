#include "recipe/learning_rate.h"

#include <algorithm>
#include <cmath>

namespace sluice::recipe {
namespace {

double warm_up_factor(const WarmUp& warm_up, double position) {
  if (position >= warm_up.length) return 1;
  return warm_up.from + (1 - warm_up.from) * (position / warm_up.length);
}

struct DecayFactor {
  double position;
  double warm_up_length;

  double operator()(const ConstantLearningRate&) const { return 1; }

  double operator()(const SteppedLearningRate& stepped) const {
    double factor = 1;
    for (const LearningRateDrop& drop : stepped.drops) {
      if (position >= drop.at) factor = drop.factor;
    }
    return factor;
  }

  double operator()(const PolynomialLearningRate& polynomial) const {
    const double passed = position - warm_up_length;
    if (passed <= 0) return 1;
    if (passed >= polynomial.length) return polynomial.end;
    const double left = 1 - passed / polynomial.length;
    return (1 - polynomial.end) * std::pow(left, polynomial.power) + polynomial.end;
  }
};

}  // namespace

double learning_rate_at(const LearningRateSchedule& schedule, double position) {
  return schedule.base * warm_up_factor(schedule.warm_up, position) *
         std::visit(DecayFactor{position, schedule.warm_up.length}, schedule.decay);
}

}  // namespace sluice::recipe
