// sparse_chunks.h - gradients in pieces that are sent or held back as a whole.
//
// A gradient that may be sparse and is of type f32 is cut into chunks of one size, its last chunk
// being what is left; no chunk straddles two gradients. Chunks are numbered gradient by gradient.
// The other gradients (1-D tensors above all) have no chunks: they are always sent whole, and count
// nowhere in the choice of what is sent.
//
// Thread-safety: immutable once built.
//
// residual.h - what a rank holds back of its gradients until it is sent.
//
// r has an element for every element of every chunk, zero at first. In a step
//
//     v = r + (scale * gradient + decay * weights)
//
// of a selected chunk v is sent and r becomes zero; of all others r becomes v. So what was sent and
// what is held back are together the sum of all that came, to rounding. There are two ways:
//
//  compact(), expand()           in place: the selected chunks move to the front of where the
//                                gradients lie, and r moves at once. No memory but r. For steps
//                                that are never skipped.
//  pack(), commit(), expand()    into memory apart, narrowed for the wire or not: gradient and r
//                                stay until it is known whether the step counts. Where it is
//                                skipped commit() is not called, and nothing has moved.
//
// Gradients without chunks have no part in it.
// Thread-safety: none of its own; different gradients do not disturb each other.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gradient/layout.h"
#include "kernels/residual.h"
#include "sluice/types.h"

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

// What a step sends, and what it leaves: both by chunk.
struct SparseStep {
  std::span<const std::uint8_t> selected;
  std::span<float> norms;  // the mean |r| that this rank is left with, 0 of what is sent
};

// How packed chunks are stored: as f32, or narrowed with a factor.
struct PackedType {
  DataType type = DataType::F32;
  float factor = 1;
};

// What pack() came upon. Of chunks that are held back, only whether they are finite is known.
struct PackFaults {
  std::uint64_t overflowed = 0;  // finite, but too large for the type
  std::uint64_t not_finite = 0;
};

class Residual {
 public:
  // `chunks` must outlive it.
  explicit Residual(const SparseChunks& chunks) : chunks_{&chunks}, r_(chunks.elements()) {}

  // By chunk, in the order of chunks: for checkpoints.
  std::span<float> values() { return r_; }
  std::span<const float> values() const { return r_; }

  // The selected chunks of gradient i, one after another. Returns the end of what was written. `to`
  // may be the gradient, or begin before it and reach into it.
  float* compact(std::size_t i, const kernels::Addend& addend, const SparseStep& step, float* to);

  // The same into memory apart; values of f32 are multiplied by the factor before they are
  // narrowed, not otherwise. Faults are added to.
  std::byte* pack(std::size_t i, const kernels::Addend& addend, const SparseStep& step,
                  const PackedType& type, std::byte* to, PackFaults& faults) const;
  // REQUIRES: addend and step are what pack() was given.
  void commit(std::size_t i, const kernels::Addend& addend, const SparseStep& step);

 private:
  float* at(const SparseChunk& chunk) { return r_.data() + chunk.offset; }
  const float* at(const SparseChunk& chunk) const { return r_.data() + chunk.offset; }

  const SparseChunks* chunks_;
  std::vector<float> r_;
};

// The elements of gradient i that are sent.
std::size_t selected_elements(const SparseChunks& chunks, std::size_t i,
                              std::span<const std::uint8_t> selected);

// Packed chunks of gradient i to their places in it, zero to all others. Goes from the back to the
// front: `packed` may be the gradient, or begin before it and reach into it. Narrowed ones are
// multiplied by the factor once they are widened.
void expand(const SparseChunks& chunks, std::size_t i, std::span<const std::uint8_t> selected,
            const PackedType& type, const std::byte* packed, float* gradient);

}  // namespace sluice::gradient
