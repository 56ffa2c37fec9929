#include "data/loader/epoch_sampler.h"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

#include "base/random.h"

namespace sluice::data {

EpochSampler::EpochSampler(const EpochSamplerOptions& options)
    : options_{options}, order_(options.samples) {
  assert(options.batch > 0 && options.rank >= 0 && options.rank < options.ranks);
  start_epoch(0);
}

std::size_t EpochSampler::steps() const {
  const std::size_t global = options_.batch * static_cast<std::size_t>(options_.ranks);
  return options_.evaluation ? (options_.samples + global - 1) / global : options_.samples / global;
}

void EpochSampler::start_epoch(std::uint64_t epoch) {
  std::iota(order_.begin(), order_.end(), std::size_t{0});
  if (options_.evaluation) return;
  base::Random random{base::mixed({options_.seed, epoch})};
  for (std::size_t left = order_.size(); left > 1; --left) {
    std::swap(order_[left - 1], order_[random.below(left)]);
  }
}

std::span<const std::size_t> EpochSampler::batch(std::size_t step) const {
  const auto ranks = static_cast<std::size_t>(options_.ranks);
  const auto rank = static_cast<std::size_t>(options_.rank);
  const std::size_t first = std::min((step * ranks + rank) * options_.batch, order_.size());
  return std::span{order_}.subspan(first, std::min(options_.batch, order_.size() - first));
}

}  // namespace sluice::data
