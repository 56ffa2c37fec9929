#include "train/loop/batch_numbers.h"

#include <algorithm>
#include <cassert>

namespace sluice::train {

BatchNumbers::BatchNumbers(const recipe::EpochTable& plan) : plan_{&plan}, firsts_{0} {
  for (const recipe::EpochRow& epoch : plan.epochs) {
    firsts_.push_back(firsts_.back() + epoch.steps * epoch.accumulate);
  }
}

std::int64_t BatchNumbers::first_of(std::int64_t step) const {
  if (step >= plan_->steps) return firsts_.back();
  const recipe::EpochRow& epoch = plan_->epoch_of(step);
  const auto number = static_cast<std::size_t>(&epoch - plan_->epochs.data());
  return firsts_[number] + (step - epoch.first_step) * epoch.accumulate;
}

BatchPosition BatchNumbers::place_of(std::int64_t number) const {
  assert(number >= 0 && number < firsts_.back());
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), number);
  const auto epoch_number = static_cast<std::size_t>(after - firsts_.begin()) - 1;
  const recipe::EpochRow& epoch = plan_->epochs[epoch_number];
  const std::int64_t inside = number - firsts_[epoch_number];
  return {.step = epoch.first_step + inside / epoch.accumulate,
          .part = static_cast<int>(inside % epoch.accumulate)};
}

}  // namespace sluice::train
