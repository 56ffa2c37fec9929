// sparsity.h - selects the gradient chunks that a step sends; one rank's residual and weight decay.
//
// Every rank computes the selection by itself, from numbers that are the same at all ranks, with
// arithmetic that gives the same bits on every machine. So all ranks send the same chunks, and no
// message is needed to agree on them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gradient/layout.h"
#include "gradient/sparse/residual.h"
#include "gradient/sparse/sparse_bucket.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/version.h"

namespace sluice::gradient {

// The sparsity of a step; steps count from 0. It is 0 for the first `dense_steps` steps. Over the
// next `ramp_steps` steps it rises by equal parts: the first of these steps is above 0, the last is
// below `sparsity`. Then it is `sparsity`. The ramp is linear; some papers use a geometric one, but
// pow() does not give the same bits in every C library.
double sparsity_at(const SparseOptions& options, std::int64_t step);

// Selects chunks from the largest norm to the smallest; of equal norms, the lower chunk number
// comes first. Stops when the other chunks have at most `sparsity` times all elements. The last
// chunk is selected whole, so the selection exceeds its share by less than one chunk. NaN counts as
// infinity.
//
// Sets selected[c] to 1 if chunk c is sent, else to 0. Returns the number of selected elements.
// Allocates nothing. REQUIRES: norms, order (scratch) and selected have an entry for each chunk.
std::size_t select_chunks(const SparseChunks& chunks, std::span<const float> norms, double sparsity,
                          std::span<std::uint32_t> order, std::span<std::uint8_t> selected);

// The state that the next steps depend on; for checkpoints.
struct SparsityState {
  struct Planned {
    bool sparse = false;
    std::vector<std::uint8_t> selected;  // by chunk
  };
  std::int64_t steps = 0;           // complete steps
  bool has_norms = false;           // norms have arrived
  std::vector<float> norms;         // by chunk
  std::vector<std::uint32_t> ages;  // by chunk: complete steps since it was sent
  std::vector<Planned> planned;     // steps that are not complete, the oldest first
};

// The selection of each step.
//
// A step is planned as soon as the step before it has started. It uses the newest norms: those of
// the step before, or with double buffering those of the step before that. If a chunk was sent
// after its norm was computed, its norm counts as 0. Until norms have arrived, everything is sent.
//
// A skipped step changes nothing: its norms are ignored, and no chunk gets older. This state is the
// same at all ranks.
//
//   plan(), [plan(),] complete(), plan(), complete() ...        at most two steps are not complete
//
// It allocates nothing in the steady state. Thread-safety: one thread at a time. Returned spans of
// a step stay valid until that step is complete.
class Sparsity {
 public:
  // Without sparsity there are no chunks, and every step sends everything.
  Sparsity(const std::vector<GradientSpec>& gradients, const SparseOptions& options);

  const SparseChunks& chunks() const { return chunks_; }

  // Selects the chunks of the next step.
  void plan();
  // The step that was planned last: whether it may leave out chunks, and which chunks it sends.
  bool sparse() const { return steps_[last()].sparse; }
  std::span<const std::uint8_t> selected() const { return steps_[last()].selected; }

  // The oldest step that is not complete is now complete. `norms`: summed over the ranks, by chunk.
  void complete(bool skipped, std::span<const float> norms);

  // The step that was completed last, unless it was skipped: the parts of gradient i that arrived,
  // in order, and whether the step was sparse.
  std::span<const GradientPart> received(std::size_t i) const {
    return std::span{received_}.subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }
  bool was_sparse() const { return was_sparse_; }

  SparsityState state() const;
  // Afterwards received() is empty. REQUIRES: the state has entries for these chunks.
  void restore(const SparsityState& state);

 private:
  std::size_t last() const { return static_cast<std::size_t>((planned_ - 1) % 2); }
  void list_received(std::span<const std::uint8_t> selected);

  SparseOptions options_;
  SparseChunks chunks_;
  std::vector<std::size_t> counts_;  // elements, by gradient
  std::int64_t planned_ = 0;
  std::int64_t completed_ = 0;
  std::array<SparsityState::Planned, 2> steps_;  // by step number modulo 2
  bool has_norms_ = false;
  bool was_sparse_ = false;
  std::vector<float> norms_;
  std::vector<std::uint32_t> ages_;
  std::vector<float> sort_keys_;      // scratch: the norms, 0 for chunks in flight
  std::vector<std::uint32_t> order_;  // scratch
  std::vector<GradientPart> received_;
  std::vector<std::size_t> begins_;  // in received_, by gradient, and the end
};

// One rank's part of sparse steps: its residual, and the weight decay, which is added to a gradient
// before it is sent.
//
// Thread-safety: one thread at a time. The hooks of the step that was planned last use a
// SparseContext until that step is complete. REQUIRES: unless `decay_before_sending`, a step is
// complete before the next plan().
class SLUICE_API SparseGradients {
 public:
  // `decay_before_sending`: add_decay() adds the decay to the slot, because the weights may change
  // while a gradient is in flight.
  SparseGradients(const std::vector<GradientSpec>& gradients, const SparseOptions& options,
                  bool decay_before_sending);

  Sparsity& sparsity() { return sparsity_; }
  const Sparsity& sparsity() const { return sparsity_; }
  std::span<float> residual() { return residual_.values(); }
  bool possible() const { return sparsity_.chunks().size() > 0; }

  // Plans the next step. REQUIRES: no gradient of that step has been marked.
  void plan();
  SparseContext context();
  // The norms that the buckets of the step compute, by chunk; empty in a dense step.
  std::span<const float> norms() const;

  void set_decay(std::size_t i, const float* weights, float factor);
  // Whether the mean of the step that was completed last includes decay.
  bool includes_decay(std::size_t i) const;
  // Call it when gradient i is marked: only then does its decay count in this step. `loss_scale` is
  // the loss scale of the gradient.
  void add_decay(std::size_t i, std::byte* slot, double loss_scale);

 private:
  Sparsity sparsity_;
  bool decay_before_sending_;
  std::vector<std::size_t> counts_;  // elements, by gradient
  Residual residual_;
  std::vector<float> norms_;
  std::vector<WeightDecay> decays_;       // by gradient
  std::vector<WeightDecay> step_decays_;  // the decays that the buckets of the step must add
};

}  // namespace sluice::gradient
