// sampler.h - which samples a rank trains on at which step.
//
// All samples are shuffled for each epoch, in the same way at every rank. A step takes the next
// global batch of this stream of shuffles; the epoch table says where it begins. So the samples of
// a step depend neither on the number of ranks nor on the number of backward passes, and no two
// ranks get the same sample in a step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "recipe/epoch_table.h"

namespace sluice::data {

// Thread-safety: one thread at a time.
class Sampler {
 public:
  // REQUIRES: the plan has steps; 0 <= rank < plan.ranks.
  Sampler(recipe::EpochTable plan, int rank, std::uint64_t seed);

  // The samples of this rank in backward pass `micro` of a step; valid until the next call. Steps
  // may come in any order; an epoch that is not one of the last two is shuffled again. REQUIRES: 0
  // <= step < plan.steps, 0 <= micro < accumulate of its epoch.
  std::span<const SampleRef> samples(std::int64_t step, int micro);

 private:
  struct Shuffle {
    std::int64_t epoch = -1;
    std::vector<std::uint32_t> order;
  };
  const Shuffle& shuffle_of(std::int64_t epoch);

  recipe::EpochTable plan_;
  int rank_;
  std::uint64_t seed_;
  std::array<Shuffle, 2> shuffles_;  // by epoch % 2: a step may reach into the next epoch
  std::vector<SampleRef> own_;
};

}  // namespace sluice::data
