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

  // A heap, because only a few of many chunks are selected.
  const double limit = sparsity * static_cast<double>(chunks.elements());
  std::size_t left = chunks.elements();
  auto end = order.end();
  while (end != order.begin() && static_cast<double>(left) > limit) {
    std::pop_heap(order.begin(), end, comes_after);
    --end;
    selected[*end] = 1;
    left -= chunks[*end].count;
  }
  return chunks.elements() - left;
}

Sparsity::Sparsity(const std::vector<GradientSpec>& gradients, const SparseOptions& options)
    : options_{options},
      // A chunk size of 0 is refused later, after all ranks have compared their options.
      chunks_{options.sparsity > 0
                  ? SparseChunks{gradients, std::max<std::size_t>(options.chunk, 1)}
                  : SparseChunks{gradients.size()}},
      norms_(chunks_.size()),
      ages_(chunks_.size()),
      sort_keys_(chunks_.size()),
      order_(chunks_.size()) {
  for (SparsityState::Planned& step : steps_) step.selected.resize(chunks_.size());
  for (const GradientSpec& gradient : gradients) counts_.push_back(gradient.count);
  received_.reserve(gradients.size() + chunks_.size());
  begins_.resize(gradients.size() + 1);
}

void Sparsity::plan() {
  assert(planned_ - completed_ < 2);
  const double sparsity = has_norms_ ? sparsity_at(options_, planned_) : 0;
  const bool under_way = planned_ > completed_;
  const SparsityState::Planned& before = steps_[static_cast<std::size_t>((planned_ + 1) % 2)];
  SparsityState::Planned& next = steps_[static_cast<std::size_t>(planned_ % 2)];
  ++planned_;
  next.sparse = sparsity > 0;
  if (!next.sparse) {
    std::fill(next.selected.begin(), next.selected.end(), std::uint8_t{1});
    return;
  }
  for (std::size_t c = 0; c < norms_.size(); ++c)
    sort_keys_[c] = under_way && before.selected[c] != 0 ? 0 : norms_[c];
  select_chunks(chunks_, sort_keys_, sparsity, order_, next.selected);
}

void Sparsity::complete(bool skipped, std::span<const float> norms) {
  assert(completed_ < planned_ && norms.size() == norms_.size());
  const SparsityState::Planned& step = steps_[static_cast<std::size_t>(completed_ % 2)];
  ++completed_;
  if (skipped) return;
  has_norms_ = true;
  was_sparse_ = step.sparse;
  std::copy(norms.begin(), norms.end(), norms_.begin());
  for (std::uint32_t& age : ages_) ++age;
  list_received(step.selected);
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
  has_norms_ = state.has_norms;
  norms_ = state.norms;
  ages_ = state.ages;
  for (const SparsityState::Planned& step : state.planned)
    steps_[static_cast<std::size_t>(planned_++ % 2)] = step;
  was_sparse_ = false;
  received_.clear();
  std::fill(begins_.begin(), begins_.end(), std::size_t{0});
}

void Sparsity::list_received(std::span<const std::uint8_t> selected) {
  received_.clear();
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    begins_[i] = received_.size();
    if (chunks_.whole(i)) received_.push_back({.first = 0, .count = counts_[i], .steps = 1});
    for (std::size_t c = chunks_.begin(i); c < chunks_.end(i); ++c) {
      const SparseChunk& chunk = chunks_[c];
      if (selected[c] != 0)
        received_.push_back({.first = chunk.first, .count = chunk.count, .steps = ages_[c]});
    }
  }
  begins_.back() = received_.size();
}

SparseGradients::SparseGradients(const std::vector<GradientSpec>& gradients,
                                 const SparseOptions& options, bool decay_before_sending)
    : sparsity_{gradients, options},
      decay_before_sending_{decay_before_sending},
      residual_{sparsity_.chunks()},
      norms_(sparsity_.chunks().size()),
      decays_(gradients.size()),
      step_decays_(gradients.size()) {
  for (const GradientSpec& gradient : gradients) counts_.push_back(gradient.count);
}

void SparseGradients::plan() {
  // With decay_before_sending they are always empty, and buckets in flight may be reading them.
  if (!decay_before_sending_) std::fill(step_decays_.begin(), step_decays_.end(), WeightDecay{});
  sparsity_.plan();
}

SparseContext SparseGradients::context() {
  return {.residual = &residual_,
          .chunks = &sparsity_.chunks(),
          .step = {sparsity_.selected(), norms_},
          .decays = &step_decays_};
}

std::span<const float> SparseGradients::norms() const {
  return sparsity_.sparse() ? std::span{norms_} : std::span<const float>{};
}

void SparseGradients::set_decay(std::size_t i, const float* weights, float factor) {
  decays_[i] = {factor == 0 ? nullptr : weights, factor};
}

bool SparseGradients::includes_decay(std::size_t i) const {
  return sparsity_.was_sparse() && !sparsity_.chunks().whole(i) && decays_[i].weights != nullptr;
}

void SparseGradients::add_decay(std::size_t i, std::byte* slot, double loss_scale) {
  const WeightDecay& decay = decays_[i];
  if (!sparsity_.sparse() || sparsity_.chunks().whole(i) || decay.weights == nullptr) return;
  if (!decay_before_sending_) {
    step_decays_[i] = decay;
    return;
  }
  const auto factor = static_cast<float>(decay.factor * loss_scale);
  kernels::accumulate(reinterpret_cast<float*>(slot), {.gradient = decay.weights, .scale = factor},
                      counts_[i]);
}

}  // namespace sluice::gradient
