#include "gradient/sparse/residual.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <cstring>

#include "kernels/convert.h"
#include "kernels/norms.h"

namespace sluice::gradient {
namespace {

float mean_of(double sum, std::size_t count) {
  return static_cast<float>(sum / static_cast<double>(count));
}

// REQUIRES: the sum is not finite. Returns at least 1: finite values may have an infinite sum.
std::uint64_t not_finite(const float* from, std::size_t count) {
  return std::max<std::uint64_t>(1, kernels::count_not_finite(DataType::F32, from, count));
}

}  // namespace

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

float* Residual::compact(std::size_t i, const kernels::Addend& addend, const SparseStep& step,
                         float* to) {
  for (std::size_t c = chunks_->begin(i); c < chunks_->end(i); ++c) {
    const SparseChunk& chunk = (*chunks_)[c];
    if (step.selected[c] != 0) {
      kernels::drain(to, at(chunk), addend.from(chunk.first), chunk.count);
      to += chunk.count;
      step.norms[c] = 0;
    } else {
      step.norms[c] = mean_of(kernels::accumulate(at(chunk), addend.from(chunk.first), chunk.count),
                              chunk.count);
    }
  }
  return to;
}

std::byte* Residual::pack(std::size_t i, const kernels::Addend& addend, const SparseStep& step,
                          const PackedType& type, std::byte* to, OverflowCounts& all) const {
  constexpr std::size_t kBlock = 4096;  // elements; narrowed while in the cache
  std::array<float, kBlock> block;
  for (std::size_t c = chunks_->begin(i); c < chunks_->end(i); ++c) {
    const SparseChunk& chunk = (*chunks_)[c];
    const kernels::Addend own = addend.from(chunk.first);
    step.norms[c] = 0;
    if (step.selected[c] == 0) {
      const double sum = kernels::norm_of_sum(at(chunk), own, chunk.count);
      if (!std::isfinite(sum)) all.not_finite += not_finite(own.gradient, chunk.count);
      step.norms[c] = mean_of(sum, chunk.count);
    } else if (type.type == DataType::F32) {
      const double sum = kernels::sum_to(reinterpret_cast<float*>(to), at(chunk), own, chunk.count);
      if (!std::isfinite(sum)) all.not_finite += not_finite(own.gradient, chunk.count);
      to += chunk.count * sizeof(float);
    } else {
      for (std::size_t first = 0; first < chunk.count; first += kBlock) {
        const std::size_t count = std::min(kBlock, chunk.count - first);
        kernels::sum_to(block.data(), at(chunk) + first, own.from(first), count);
        const kernels::ConvertCounts counts =
            kernels::narrow(type.type, to, block.data(), count, type.factor);
        all.overflowed += counts.overflow;
        all.not_finite += counts.inf + counts.nan;
        to += count * size_of(type.type);
      }
    }
  }
  return to;
}

void Residual::commit(std::size_t i, const kernels::Addend& addend, const SparseStep& step) {
  for (std::size_t c = chunks_->begin(i); c < chunks_->end(i); ++c) {
    const SparseChunk& chunk = (*chunks_)[c];
    if (step.selected[c] != 0) {
      std::fill_n(at(chunk), chunk.count, 0.0F);
    } else {
      kernels::accumulate(at(chunk), addend.from(chunk.first), chunk.count);
    }
  }
}

std::size_t selected_elements(const SparseChunks& chunks, std::size_t i,
                              std::span<const std::uint8_t> selected) {
  std::size_t elements = 0;
  for (std::size_t c = chunks.begin(i); c < chunks.end(i); ++c) {
    if (selected[c] != 0) elements += chunks[c].count;
  }
  return elements;
}

void expand(const SparseChunks& chunks, std::size_t i, std::span<const std::uint8_t> selected,
            const PackedType& type, const std::byte* packed, float* gradient) {
  packed += selected_elements(chunks, i, selected) * size_of(type.type);
  for (std::size_t c = chunks.end(i); c-- > chunks.begin(i);) {
    const SparseChunk& chunk = chunks[c];
    float* const to = gradient + chunk.first;
    if (selected[c] == 0) {
      std::fill_n(to, chunk.count, 0.0F);
      continue;
    }
    packed -= chunk.count * size_of(type.type);
    if (type.type == DataType::F32) {
      std::memmove(to, packed, chunk.count * sizeof(float));
    } else {
      kernels::widen(type.type, to, packed, chunk.count, type.factor);
    }
  }
}

}  // namespace sluice::gradient
