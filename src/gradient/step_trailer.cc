#include "gradient/step_trailer.h"

#include <algorithm>

namespace sluice::gradient {

StepTrailer::StepTrailer(Communicator& communicator, std::size_t gradients, std::size_t extra)
    : pool_{communicator.allocate(
          (gradients + kFaultNumbers * static_cast<std::size_t>(communicator.size()) + extra) *
          sizeof(float))},
      numbers_{pool_.as<float>()},
      faults_{gradients},
      ranks_{static_cast<std::size_t>(communicator.size())},
      rank_{communicator.rank()} {
  numbers_ = numbers_.first(gradients + kFaultNumbers * ranks_ + extra);
}

void StepTrailer::clear() { std::fill(numbers_.begin(), numbers_.end(), 0.0F); }

std::span<float> StepTrailer::faults_of(Rank rank) const {
  return numbers_.subspan(faults_ + kFaultNumbers * static_cast<std::size_t>(rank), kFaultNumbers);
}

void StepTrailer::set_faults(const Faults& faults) {
  const std::span<float> own = faults_of(rank_);
  own[0] = static_cast<float>(faults.overflowed);
  own[1] = static_cast<float>(faults.not_finite);
  own[2] = faults.first == kNoGradient ? 0.0F : static_cast<float>(faults.first + 1);
  own[3] = static_cast<float>(faults.in_first);
}

Faults StepTrailer::faults(Rank rank) const {
  const std::span<float> theirs = faults_of(rank);
  return {.overflowed = static_cast<std::uint64_t>(theirs[0]),
          .not_finite = static_cast<std::uint64_t>(theirs[1]),
          .first = theirs[2] == 0 ? kNoGradient : static_cast<std::size_t>(theirs[2]) - 1,
          .in_first = static_cast<std::uint64_t>(theirs[3])};
}

}  // namespace sluice::gradient
