#include "data/loader/sampler.h"

#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace sluice::data {

Sampler::Sampler(recipe::EpochTable plan, int rank, std::uint64_t seed)
    : plan_{std::move(plan)}, rank_{rank}, seed_{seed} {
  assert(plan_.steps > 0 && rank >= 0 && rank < plan_.ranks);
  assert(plan_.samples > 0 && plan_.samples <= std::numeric_limits<std::uint32_t>::max());
}

const Sampler::Shuffle& Sampler::shuffle_of(std::int64_t epoch) {
  Shuffle& shuffle = shuffles_[static_cast<std::size_t>(epoch % 2)];
  if (shuffle.epoch == epoch) return shuffle;
  shuffle.epoch = epoch;
  shuffle.order.resize(static_cast<std::size_t>(plan_.samples));
  std::iota(shuffle.order.begin(), shuffle.order.end(), 0U);
  base::Random random{base::mixed({seed_, static_cast<std::uint64_t>(epoch)})};
  for (std::size_t left = shuffle.order.size(); left > 1; --left) {
    std::swap(shuffle.order[left - 1], shuffle.order[random.below(left)]);
  }
  return shuffle;
}

std::span<const SampleRef> Sampler::samples(std::int64_t step, int micro) {
  const recipe::EpochRow& epoch = plan_.epoch_of(step);
  assert(micro >= 0 && micro < epoch.accumulate);
  std::int64_t position =
      plan_.first_sample(step) + (std::int64_t{micro} * plan_.ranks + rank_) * epoch.batch;
  own_.clear();
  for (int i = 0; i < epoch.batch; ++i, ++position) {
    const Shuffle& shuffle = shuffle_of(position / plan_.samples);
    own_.push_back({static_cast<std::uint64_t>(shuffle.epoch),
                    shuffle.order[static_cast<std::size_t>(position % plan_.samples)]});
  }
  return own_;
}

}  // namespace sluice::data
