// batch_numbers.h - the batches of a rank in one training, numbered through from the first step on.
#pragma once

#include <cstdint>
#include <vector>

#include "recipe/epoch_table.h"

namespace sluice::train {

struct BatchPosition {
  std::int64_t step = 0;
  int part = 0;  // which of the step's batches
  bool operator==(const BatchPosition&) const = default;
};

// Thread-safety: immutable.
class BatchNumbers {
 public:
  // `plan` must outlive it.
  explicit BatchNumbers(const recipe::EpochTable& plan);

  // Of a step's first batch; of plan.steps: how many there are.
  std::int64_t first_of(std::int64_t step) const;
  // REQUIRES: 0 <= number < first_of(plan.steps).
  BatchPosition place_of(std::int64_t number) const;

 private:
  const recipe::EpochTable* plan_;
  std::vector<std::int64_t> firsts_;  // by epoch, and after the last
};

}  // namespace sluice::train
