// selection.h - which chunks a step sends.
//
// Every rank computes it by itself, from numbers that are the same at all ranks, in arithmetic that
// is the same on every machine: all send the same chunks without asking each other.
//
// sparsity.h - which chunks are sent, step by step, and how long each had been held back.
//
// A step is planned as soon as the step before has been started: from the newest norms that have
// arrived, which are those of the step before, with double buffering of the one before that. What
// has been sent since they were taken counts 0, as what was sent when they were taken does. Before
// any have arrived all is sent.
//
// A skipped step changes nothing: no norms are taken from it, and no time passes for what is held
// back. All of it is the same at all ranks.
//
//   plan(), [plan(),] complete(), plan(), complete() ...        at most two steps are not complete
//
// In the steady state nothing is allocated. Thread-safety: one thread at a time; what is given out
// of a step stays as it is until that step is complete.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gradient/layout.h"
#include "gradient/sparse/residual.h"
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

// The next steps depend on it; for checkpoints.
struct SparsityState {
  struct Planned {
    bool sparse = false;
    std::vector<std::uint8_t> selected;  // by chunk
  };
  std::int64_t steps = 0;           // that are complete
  bool arrived = false;             // there are norms
  std::vector<float> norms;         // by chunk
  std::vector<std::uint32_t> ages;  // by chunk: complete steps since it was sent
  std::vector<Planned> planned;     // that are not complete, the oldest first
};

class Sparsity {
 public:
  // Without sparsity there are no chunks, and every step sends all.
  Sparsity(const std::vector<GradientSpec>& gradients, const SparseOptions& options);

  const SparseChunks& chunks() const { return chunks_; }

  // Chooses what the next step sends.
  void plan();
  // Of the step that was planned last: whether anything may be held back, and what is sent.
  bool sparse() const { return steps_[last()].sparse; }
  std::span<const std::uint8_t> selected() const { return steps_[last()].selected; }

  // The oldest step that is not complete is over. `norms`: summed over the ranks, by chunk.
  void complete(bool skipped, std::span<const float> norms);

  // Of the step that was completed last, unless it was skipped: the parts of gradient i that
  // arrived, in order, and whether it was a sparse step.
  std::span<const GradientPart> arrived(std::size_t i) const {
    return std::span{arrived_}.subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }
  bool was_sparse() const { return was_sparse_; }

  SparsityState state() const;
  // What arrived in the last step is not known any more. REQUIRES: it fits these chunks.
  void restore(const SparsityState& state);

 private:
  using StepContext = SparsityState::Planned;
  std::size_t last() const { return static_cast<std::size_t>((planned_ - 1) % 2); }
  void list_arrived(std::span<const std::uint8_t> selected);

  SparseOptions options_;
  SparseChunks chunks_;
  std::vector<std::size_t> counts_;  // elements, by gradient
  std::int64_t planned_ = 0;
  std::int64_t completed_ = 0;
  std::array<StepContext, 2> steps_;  // by number, modulo 2
  bool has_norms_ = false;
  bool was_sparse_ = false;
  std::vector<float> norms_;
  std::vector<std::uint32_t> ages_;
  std::vector<float> weighed_;        // scratch: norms as they count
  std::vector<std::uint32_t> order_;  // scratch
  std::vector<GradientPart> arrived_;
  std::vector<std::size_t> begins_;  // in arrived_, by gradient, and the end
};

}  // namespace sluice::gradient
