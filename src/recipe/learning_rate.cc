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

LearningRateSchedule learning_rate_schedule(const Recipe& recipe, const EpochTable& table) {
  const double growth =
      static_cast<double>(table.epochs[0].global_batch) / static_cast<double>(recipe.rate_batch);
  LearningRateSchedule schedule{
      .base = recipe.rate,
      .warm_up = {.length = recipe.warm_up_epochs, .from = recipe.warm_up_from}};
  if (recipe.rate_scaling == LearningRateScaling::Linear) schedule.base *= growth;
  if (recipe.rate_scaling == LearningRateScaling::Sqrt) schedule.base *= std::sqrt(growth);
  if (recipe.decay == DecayKind::Step) schedule.decay = SteppedLearningRate{recipe.drops};
  if (recipe.decay == DecayKind::Polynomial) {
    const double rest = std::max(0.0, recipe.epochs - recipe.warm_up_epochs);
    schedule.decay =
        PolynomialLearningRate{.length = recipe.poly_epochs > 0 ? recipe.poly_epochs : rest,
                               .power = recipe.poly_power,
                               .end = recipe.poly_end};
  }
  return schedule;
}

double learning_rate_at(const Recipe& recipe, const EpochTable& table, std::int64_t step) {
  return learning_rate_at(learning_rate_schedule(recipe, table), table.epoch_at(step));
}

}  // namespace sluice::recipe
