// epoch_table.h - the epochs and steps of a recipe, for a number of ranks and of samples.
//
// Every epoch has a new shuffle of all samples. The shuffles form one endless stream: position p is
// sample p % samples of the shuffle of epoch p / samples. A step takes the next global batch of the
// stream, for any number of ranks. Recipe::epoch_end decides where in the stream an epoch begins.
// With drop and fill, epoch e begins at e x samples: drop leaves out the samples that do not fill a
// step, and fill takes the missing ones from the next shuffle. With run_on it begins where the last
// step ended.
//
// Trainer and simulator read the same table. Thread-safety: plain values and pure functions.
#pragma once

#include <cstdint>
#include <vector>

#include "recipe/recipe.h"
#include "sluice/status.h"

namespace sluice::recipe {

struct EpochRow {
  std::int64_t first_step = 0;
  std::int64_t steps = 0;
  int batch = 0;                       // samples of a rank in one backward pass
  int accumulate = 1;                  // backward passes of a step
  std::int64_t global_batch = 0;       // batch x ranks x accumulate
  std::int64_t first_sample = 0;       // position in the stream of first_step
  std::int64_t steps_of_an_epoch = 0;  // of the whole epoch, even if the training ends within it
};

struct EpochTable {
  std::vector<EpochRow> epochs;  // epochs with at least one step
  std::int64_t steps = 0;
  std::int64_t samples = 0;
  int ranks = 1;
  EpochEnd epoch_end = EpochEnd::Drop;

  // REQUIRES: 0 <= step < steps.
  const EpochRow& epoch_of(std::int64_t step) const;
  // The position in the stream at which a step begins.
  std::int64_t first_sample(std::int64_t step) const;
  // The epochs that have passed when `step` begins; at `steps`, all of them. With drop and fill the
  // first step of epoch e returns exactly e.
  double epoch_at(std::int64_t step) const;
  // The first step that begins at `epoch` or later; `steps` if there is none.
  std::int64_t step_at(double epoch) const;
};

// Fails if the samples do not fill one global batch, or if the ranks cannot share it evenly. The
// error suggests values that work.
Result<EpochTable> make_epoch_table(const Recipe& recipe, int ranks, std::int64_t samples);

// Whether the recipe evaluates, or saves a checkpoint, after `step`. After the last step both are
// true.
bool evaluates_after(const Recipe& recipe, const EpochTable& table, std::int64_t step);
bool checkpoints_after(const Recipe& recipe, const EpochTable& table, std::int64_t step);

}  // namespace sluice::recipe
