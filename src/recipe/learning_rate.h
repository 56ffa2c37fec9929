// learning_rate.h - the learning rate by position in a training.
//
// A position counts from 0, in epochs or in steps: all numbers of a schedule in the same.
#pragma once

#include <variant>
#include <vector>

namespace sluice::recipe {

// The rate rises along a straight line from `from` times its value, at position 0, and has its
// value from position `length` on.
struct WarmUp {
  double length = 0;
  double from = 0;
};

struct ConstantLearningRate {};

// From position `at` on the rate is `factor` times its base. In order of positions.
struct LearningRateDrop {
  double at = 0;
  double factor = 1;
  bool operator==(const LearningRateDrop&) const = default;
};
struct SteppedLearningRate {
  std::vector<LearningRateDrop> drops;
};

// Falls from the base to `end` times the base: base ((1 - end) (1 - p)^power + end), where p is the
// part of `length` that has passed since the warm-up.
struct PolynomialLearningRate {
  double length = 1;
  double power = 1;
  double end = 0;
};

struct LearningRateSchedule {
  double base = 0.1;
  WarmUp warm_up;  // multiplies what follows
  std::variant<ConstantLearningRate, SteppedLearningRate, PolynomialLearningRate> decay;
};

double learning_rate_at(const LearningRateSchedule& schedule, double position);

}  // namespace sluice::recipe
