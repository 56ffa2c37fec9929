// learning_rate.h - the learning rate by position in a training.
//
// A position counts epochs or steps from 0. All numbers of one schedule use the same unit.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "recipe/epoch_table.h"
#include "recipe/recipe.h"

namespace sluice::recipe {

// The learning rate rises linearly from `from` times its value, at position 0, to its full value at
// position `length`.
struct WarmUp {
  double length = 0;
  double from = 0;
};

struct ConstantLearningRate {};

struct SteppedLearningRate {
  std::vector<LearningRateDrop> drops;
};

// Falls from the base to `end` times the base: base ((1 - end) (1 - p)^power + end), where p is the
// fraction of `length` that has passed since the warm-up.
struct PolynomialLearningRate {
  double length = 1;
  double power = 1;
  double end = 0;
};

struct LearningRateSchedule {
  double base = 0.1;
  WarmUp warm_up;  // multiplies the decay
  std::variant<ConstantLearningRate, SteppedLearningRate, PolynomialLearningRate> decay;
};

double learning_rate_at(const LearningRateSchedule& schedule, double position);

// The recipe's schedule; its positions are epochs. Scales the learning rate for the first global
// batch, by the recipe's rule.
LearningRateSchedule learning_rate_schedule(const Recipe& recipe, const EpochTable& table);
// The learning rate of a step.
double learning_rate_at(const Recipe& recipe, const EpochTable& table, std::int64_t step);

}  // namespace sluice::recipe
