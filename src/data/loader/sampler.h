// sampler.h - which samples a rank learns from at which step.
//
// All samples are shuffled for each epoch, the same at every rank; a step takes the next global
// batch of the stream of shuffles, where the plan says. So a step's samples depend neither on how
// many ranks share it nor in how many parts each takes its share, and no two ranks see the same one
// at a step.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "data/loader/sample_ref.h"
#include "recipe/epoch_table.h"

namespace sluice::data {

// Thread-safety: one thread at a time.
class Sampler {
 public:
  // REQUIRES: the plan has steps; 0 <= rank < plan.ranks.
  Sampler(recipe::EpochTable plan, int rank, std::uint64_t seed);

  // What the rank takes in part `micro` of a step; valid until the next call. Steps may come in any
  // order; an epoch that was not among the last two is shuffled anew.
  // REQUIRES: 0 <= step < plan.steps, 0 <= micro < accumulate of its epoch.
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
