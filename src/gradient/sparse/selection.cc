#include "gradient/sparse/selection.h"

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

}  // namespace sluice::gradient
