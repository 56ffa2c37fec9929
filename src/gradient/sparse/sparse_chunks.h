// sparse_chunks.h - gradients in pieces that are sent or held back as a whole.
//
// A gradient that may be sparse and is of type f32 is cut into chunks of one size, its last chunk
// being what is left; no chunk straddles two gradients. Chunks are numbered gradient by gradient.
// The other gradients (1-D tensors above all) have no chunks: they are always sent whole, and count
// nowhere in the choice of what is sent.
//
// Thread-safety: immutable once built.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "gradient/gradient_spec.h"

namespace sluice::gradient {

struct SparseChunk {
  std::size_t gradient = 0;
  std::size_t first = 0;   // element of the gradient
  std::size_t count = 0;   // elements
  std::size_t offset = 0;  // elements of all chunks before this one
  bool operator==(const SparseChunk&) const = default;
};

class SparseChunks {
 public:
  // REQUIRES: size is at least 1.
  SparseChunks(std::span<const GradientSpec> gradients, std::size_t size);
  // All gradients are whole.
  explicit SparseChunks(std::size_t gradients) : begins_(gradients + 1) {}

  std::size_t size() const { return chunks_.size(); }
  std::size_t elements() const { return elements_; }  // of all chunks
  const SparseChunk& operator[](std::size_t chunk) const { return chunks_[chunk]; }

  // The chunks of gradient i are [begin(i), end(i)): none of one that is always whole.
  std::size_t begin(std::size_t i) const { return begins_[i]; }
  std::size_t end(std::size_t i) const { return begins_[i + 1]; }
  bool whole(std::size_t i) const { return begin(i) == end(i); }
  std::span<const SparseChunk> of(std::size_t i) const {
    return std::span{chunks_}.subspan(begin(i), end(i) - begin(i));
  }
  // The chunk that holds an element of a gradient that has chunks.
  std::size_t at(std::size_t i, std::size_t element) const { return begin(i) + element / chunk_; }

 private:
  std::size_t chunk_ = 1;
  std::size_t elements_ = 0;
  std::vector<SparseChunk> chunks_;
  std::vector<std::size_t> begins_;  // by gradient, and one past the last
};

}  // namespace sluice::gradient
