#include "gradient/sparse/sparsity.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <numeric>

namespace sluice::gradient {

double sparsity_at(const SparseOptions& options, std::int64_t step) {
  const std::int64_t ramped = step - options.dense_steps;
  if (ramped < 0) return 0;
  if (ramped >= options.ramp_steps) return options.sparsity;
  return options.sparsity * static_cast<double>(ramped + 1) /
         static_cast<double>(options.ramp_steps + 1);
}

std::size_t select_chunks(const SparseChunks& chunks, std::span<const float> norms, double sparsity,
                          std::span<std::uint32_t> order, std::span<std::uint8_t> selected) {
  assert(norms.size() == chunks.size() && order.size() == chunks.size() &&
         selected.size() == chunks.size());
  const auto key = [&](std::uint32_t chunk) {
    return std::isnan(norms[chunk]) ? std::numeric_limits<float>::infinity() : norms[chunk];
  };
  const auto comes_after = [&](std::uint32_t a, std::uint32_t b) {
    return key(a) != key(b) ? key(a) < key(b) : a > b;
  };
  std::iota(order.begin(), order.end(), 0U);
  std::make_heap(order.begin(), order.end(), comes_after);
  std::fill(selected.begin(), selected.end(), std::uint8_t{0});

  // A heap, because few of many are taken.
  const double may_be_left = sparsity * static_cast<double>(chunks.elements());
  std::size_t left = chunks.elements();
  auto end = order.end();
  while (end != order.begin() && static_cast<double>(left) > may_be_left) {
    std::pop_heap(order.begin(), end, comes_after);
    --end;
    selected[*end] = 1;
    left -= chunks[*end].count;
  }
  return chunks.elements() - left;
}

Sparsity::Sparsity(const std::vector<GradientSpec>& gradients, const SparseOptions& options)
    : options_{options},
      // A chunk of 0 is refused, but only once all ranks have compared their options.
      chunks_{options.sparsity > 0
                  ? SparseChunks{gradients, std::max<std::size_t>(options.chunk, 1)}
                  : SparseChunks{gradients.size()}},
      norms_(chunks_.size()),
      ages_(chunks_.size()),
      weighed_(chunks_.size()),
      order_(chunks_.size()) {
  for (StepContext& step : steps_) step.selected.resize(chunks_.size());
  for (const GradientSpec& gradient : gradients) counts_.push_back(gradient.count);
  arrived_.reserve(gradients.size() + chunks_.size());
  begins_.resize(gradients.size() + 1);
}

void Sparsity::plan() {
  assert(planned_ - completed_ < 2);
  const double sparsity = has_norms_ ? sparsity_at(options_, planned_) : 0;
  const bool under_way = planned_ > completed_;
  const StepContext& before = steps_[static_cast<std::size_t>((planned_ + 1) % 2)];
  StepContext& next = steps_[static_cast<std::size_t>(planned_ % 2)];
  ++planned_;
  next.sparse = sparsity > 0;
  if (!next.sparse) {
    std::fill(next.selected.begin(), next.selected.end(), std::uint8_t{1});
    return;
  }
  for (std::size_t c = 0; c < norms_.size(); ++c)
    weighed_[c] = under_way && before.selected[c] != 0 ? 0 : norms_[c];
  select_chunks(chunks_, weighed_, sparsity, order_, next.selected);
}

void Sparsity::complete(bool skipped, std::span<const float> norms) {
  assert(completed_ < planned_ && norms.size() == norms_.size());
  const StepContext& step = steps_[static_cast<std::size_t>(completed_ % 2)];
  ++completed_;
  if (skipped) return;
  has_norms_ = true;
  was_sparse_ = step.sparse;
  std::copy(norms.begin(), norms.end(), norms_.begin());
  for (std::uint32_t& age : ages_) ++age;
  list_arrived(step.selected);
  for (std::size_t c = 0; c < ages_.size(); ++c) {
    if (step.selected[c] != 0) ages_[c] = 0;
  }
}

SparsityState Sparsity::state() const {
  SparsityState state{completed_, has_norms_, norms_, ages_, {}};
  for (std::int64_t step = completed_; step < planned_; ++step)
    state.planned.push_back(steps_[static_cast<std::size_t>(step % 2)]);
  return state;
}

void Sparsity::restore(const SparsityState& state) {
  assert(state.norms.size() == norms_.size() && state.ages.size() == ages_.size() &&
         state.planned.size() <= steps_.size());
  completed_ = planned_ = state.steps;
  has_norms_ = state.arrived;
  norms_ = state.norms;
  ages_ = state.ages;
  for (const StepContext& step : state.planned)
    steps_[static_cast<std::size_t>(planned_++ % 2)] = step;
  was_sparse_ = false;
  arrived_.clear();
  std::fill(begins_.begin(), begins_.end(), std::size_t{0});
}

void Sparsity::list_arrived(std::span<const std::uint8_t> selected) {
  arrived_.clear();
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    begins_[i] = arrived_.size();
    if (chunks_.whole(i)) arrived_.push_back({.first = 0, .count = counts_[i], .steps = 1});
    for (std::size_t c = chunks_.begin(i); c < chunks_.end(i); ++c) {
      const SparseChunk& chunk = chunks_[c];
      if (selected[c] != 0)
        arrived_.push_back({.first = chunk.first, .count = chunk.count, .steps = ages_[c]});
    }
  }
  begins_.back() = arrived_.size();
}

}  // namespace sluice::gradient
