// selection.h - which chunks a step sends.
//
// Every rank computes it by itself, from numbers that are the same at all ranks, in arithmetic that
// is the same on every machine: all send the same chunks without asking each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "gradient/sparse/sparse_chunks.h"
#include "sluice/gradients.h"

namespace sluice::gradient {

// The sparsity of a step, counted from 0: none for `dense_steps`; then over `ramp_steps` it rises
// by equal parts, the first of them above 0 and the last below `sparsity`; from then on `sparsity`.
// (A straight line, and not the geometric one of some papers, because pow() has not the same bits
// in every C library.)
double sparsity_at(const SparseOptions& options, std::int64_t step);

// Chunks are taken in falling order of their norms, ties in the order of their numbers, until no
// more than `sparsity` times the elements of all chunks are left. So the last one is taken whole
// where a part would have been enough: what is sent exceeds its share by less than one chunk. NaN
// counts as infinity.
//
// selected[c] becomes 1 if chunk c is sent, else 0. Returns the elements that are. Allocates
// nothing. REQUIRES: norms, order (scratch) and selected each have an entry a chunk.
std::size_t select_chunks(const SparseChunks& chunks, std::span<const float> norms, double sparsity,
                          std::span<std::uint32_t> order, std::span<std::uint8_t> selected);

}  // namespace sluice::gradient
