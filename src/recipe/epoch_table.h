// epoch_table.h - a recipe on so many ranks and samples: which steps there are, and their rates.
//
// All samples are shuffled anew for each epoch, and the shuffles follow each other as one endless
// stream: position p is sample p % samples of the shuffle of epoch p / samples. A step takes the
// next global batch of the stream, whatever the number of ranks. How epochs end (Recipe::epoch_end)
// is only where each begins in the stream: drop and fill begin epoch e at e x samples, so drop
// leaves out what does not fill a step and fill borrows from the next shuffle; run_on goes on where
// the last step ended.
//
// Trainer and simulator read the same plan. Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "recipe/learning_rate.h"
#include "recipe/recipe.h"
#include "sluice/status.h"

namespace sluice::recipe {

struct EpochRow {
  std::int64_t first_step = 0;
  std::int64_t steps = 0;
  int batch = 0;                       // samples of a rank in one backward
  int accumulate = 1;                  // backwards of a step
  std::int64_t global_batch = 0;       // batch x ranks x accumulate
  std::int64_t first_sample = 0;       // where in the stream first_step begins
  std::int64_t steps_of_an_epoch = 0;  // steps, unless the training ends within this one
};

struct EpochTable {
  std::vector<EpochRow> epochs;  // none without steps
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  int ranks = 1;
  EpochEnd epoch_end = EpochEnd::Drop;

  // REQUIRES: 0 <= step < steps.
  const EpochRow& epoch_of(std::int64_t step) const;
  // Where in the stream a step begins.
  std::int64_t first_sample(std::int64_t step) const;
  // Epochs that have passed when `step` begins; at `steps`: in all. With drop and fill an epoch's
  // first step has its number, to the bit.
  double epoch_at(std::int64_t step) const;
  // The first step that begins at `epoch` or later; `steps` where none does.
  std::int64_t step_at(double epoch) const;
};

// Too few samples, or a global batch that ranks cannot share, is an error that says what fits.
Result<EpochTable> make_epoch_table(const Recipe& recipe, int ranks, std::int64_t samples);

// By epochs; scaled to the plan's first global batch by the recipe's rule.
LearningRateSchedule learning_rate_schedule(const Recipe& recipe, const EpochTable& plan);
// The rate of a step.
double learning_rate_at(const Recipe& recipe, const EpochTable& plan, std::int64_t step);

// Whether the recipe wants it once `step` is done; after the last step both.
bool evaluates_after(const Recipe& recipe, const EpochTable& plan, std::int64_t step);
bool checkpoints_after(const Recipe& recipe, const EpochTable& plan, std::int64_t step);

}  // namespace sluice::recipe
