#include "train/loop/training_batches.h"

#include <gtest/gtest.h>

namespace sluice::train {
namespace {

TEST(BatchNumbers, CountTheBatchesOfAllSteps) {
  recipe::EpochTable plan;
  plan.epochs = {{.first_step = 0, .steps = 3, .batch = 4, .accumulate = 1},
                 {.first_step = 3, .steps = 2, .batch = 4, .accumulate = 3},
                 {.first_step = 5, .steps = 2, .batch = 4, .accumulate = 2}};
  plan.steps = 7;
  const BatchNumbers numbers{plan};
  std::int64_t number = 0;
  for (std::int64_t step = 0; step < plan.steps; ++step) {
    EXPECT_EQ(numbers.first_of(step), number);
    const int parts = step < 3 ? 1 : step < 5 ? 3 : 2;
    for (int part = 0; part < parts; ++part) {
      EXPECT_EQ(numbers.position_of(number++), (BatchPosition{step, part}));
    }
  }
  EXPECT_EQ(numbers.first_of(plan.steps), number);
}

}  // namespace
}  // namespace sluice::train
