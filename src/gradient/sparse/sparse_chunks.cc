#include "gradient/sparse/sparse_chunks.h"

#include <algorithm>
#include <cassert>

namespace sluice::gradient {

SparseChunks::SparseChunks(std::span<const GradientSpec> gradients, std::size_t size)
    : chunk_{size} {
  assert(size > 0);
  begins_.reserve(gradients.size() + 1);
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    begins_.push_back(chunks_.size());
    if (!gradients[i].may_be_sparse || gradients[i].type != DataType::F32) continue;
    for (std::size_t first = 0; first < gradients[i].count; first += size) {
      const std::size_t count = std::min(size, gradients[i].count - first);
      chunks_.push_back({.gradient = i, .first = first, .count = count, .offset = elements_});
      elements_ += count;
    }
  }
  begins_.push_back(chunks_.size());
}

}  // namespace sluice::gradient
