// residual.h - the gradient chunks of a model, and the gradients that a rank has not sent yet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gradient/layout.h"
#include "gradient/wire/wire.h"
#include "kernels/residual.h"
#include "sluice/types.h"

namespace sluice::gradient {

// A gradient chunk: a step sends it as a whole, or not at all.
struct SparseChunk {
  std::size_t gradient = 0;
  std::size_t first = 0;   // element of the gradient
  std::size_t count = 0;   // elements
  std::size_t offset = 0;  // elements of all gradient chunks before this one
  bool operator==(const SparseChunk&) const = default;
};

// The gradient chunks of a model, numbered gradient by gradient. Each f32 gradient that may be
// sparse is cut into chunks of one size; its last chunk may be smaller. No chunk belongs to two
// gradients. All other gradients (mostly 1-D tensors) have no chunks and are always sent whole.
//
// Thread-safety: immutable once built.
class SparseChunks {
 public:
  // REQUIRES: size is at least 1.
  SparseChunks(std::span<const GradientSpec> gradients, std::size_t size);
  // Without chunks: all gradients are always sent whole.
  explicit SparseChunks(std::size_t gradients) : begins_(gradients + 1) {}

  std::size_t size() const { return chunks_.size(); }
  std::size_t elements() const { return elements_; }  // of all chunks
  const SparseChunk& operator[](std::size_t chunk) const { return chunks_[chunk]; }

  // The chunks of gradient i are [begin(i), end(i)); empty if it is always sent whole.
  std::size_t begin(std::size_t i) const { return begins_[i]; }
  std::size_t end(std::size_t i) const { return begins_[i + 1]; }
  bool whole(std::size_t i) const { return begin(i) == end(i); }
  std::span<const SparseChunk> of(std::size_t i) const {
    return std::span{chunks_}.subspan(begin(i), end(i) - begin(i));
  }
  // The chunk of an element. REQUIRES: not whole(i).
  std::size_t at(std::size_t i, std::size_t element) const { return begin(i) + element / chunk_; }

 private:
  std::size_t chunk_ = 1;
  std::size_t elements_ = 0;
  std::vector<SparseChunk> chunks_;
  std::vector<std::size_t> begins_;  // by gradient, and the end
};

// The chunks that a step sends, and the norms of those that remain; both by gradient chunk.
struct SparseStep {
  std::span<const std::uint8_t> selected;  // 1: sent
  std::span<float> norms;  // the mean |r| at this rank after the step; 0 for sent chunks
};

// How packed chunks are stored: as f32, or narrowed with a factor.
struct PackedType {
  DataType type = DataType::F32;
  float factor = 1;
};

// The residual r of a rank has an element for every element of every gradient chunk, zero at first.
// In a step
//
//     v = r + (scale * gradient + decay * weights)
//
// A selected chunk sends v and sets r = 0; every other chunk sets r = v. So the values sent so far
// plus r equal the sum of all gradients, up to rounding. There are two ways:
//
//  compact(), expand()         in place: moves the selected chunks to the front of the gradients'
//                              memory, and updates r at once. Needs no memory besides r. For steps
//                              that are never skipped.
//  pack(), commit(), expand()  into separate memory, narrowed or not. Gradient and r do not change
//                              until commit(), which is not called for a skipped step.
//
// Gradients without chunks are not handled here. Thread-safety: threads may work on different
// gradients at the same time.
class Residual {
 public:
  // `chunks` must outlive it.
  explicit Residual(const SparseChunks& chunks) : chunks_{&chunks}, r_(chunks.elements()) {}

  // In the order of chunks.
  std::span<float> values() { return r_; }
  std::span<const float> values() const { return r_; }

  // Writes the selected chunks of gradient i one after another, and returns the end. `to` may be
  // the gradient, or begin before it and reach into it.
  float* compact(std::size_t i, const kernels::Addend& addend, const SparseStep& step, float* to);

  // Writes the selected chunks into separate memory, and returns the end. Values are multiplied by
  // the factor only if they are narrowed. Adds to `counts`: in selected chunks, all values that
  // overflow or are not finite; in the other chunks, only values that are not finite.
  std::byte* pack(std::size_t i, const kernels::Addend& addend, const SparseStep& step,
                  const PackedType& type, std::byte* to, OverflowCounts& counts) const;
  // Updates r. REQUIRES: the addend and step of the last pack().
  void commit(std::size_t i, const kernels::Addend& addend, const SparseStep& step);

 private:
  float* at(const SparseChunk& chunk) { return r_.data() + chunk.offset; }
  const float* at(const SparseChunk& chunk) const { return r_.data() + chunk.offset; }

  const SparseChunks* chunks_;
  std::vector<float> r_;
};

// The number of elements of gradient i that are sent.
std::size_t selected_elements(const SparseChunks& chunks, std::size_t i,
                              std::span<const std::uint8_t> selected);

// Moves the packed chunks of gradient i to their offsets in it, and sets all others to zero. It
// works from back to front, so `packed` may be the gradient, or begin before it and reach into it.
// Narrowed values are multiplied by the factor after they are widened.
void expand(const SparseChunks& chunks, std::size_t i, std::span<const std::uint8_t> selected,
            const PackedType& type, const std::byte* packed, float* gradient);

}  // namespace sluice::gradient
