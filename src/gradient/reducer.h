// reducer.h - averages the gradients of a model over all ranks while backward computes them.
//
// All gradients are in one pool, each in its slot, in the order in which backward computes them.
// Consecutive slots are sent together as a bucket, once all gradients of the bucket are ready and
// all buckets before it have been sent. The progress thread moves the buckets while backward goes
// on. Buckets depend only on slots and options, so all ranks send the same buckets in the same
// order.
//
//   for each step:   for each gradient, as backward computes it:  write slot(i); mark_ready(i);
//                    finish();     ->  result(i) is the mean over all ranks, if used(i)
//
// A slot that is not marked by finish() counts as zero at this rank, whatever it contains. Rank 0
// logs once for each gradient that some rank does not have.
//
// At first the slots are in reverse order of registration. The first finish() changes that to the
// order in which rank 0 marked them. This moves slots and results; layout_version() shows it.
//
// Without double buffering there is one pool, a bucket is sent as soon as possible, and finish()
// waits for all. With double buffering there are two pools: finish() waits for the step before,
// then sends all buckets, and swaps the pools. So at most one step is in flight, and one
// InFlightStep serves both pools. The weights may change while a gradient is in flight, so its
// decay is added when it is marked.
//
// Sparse steps (sparse/sparsity.h) send the gradient chunks with the largest residuals. Then
// result(i) has their mean, and zero elsewhere; received(i) says where.
//
// A step ends in two stages: await_step() waits for it and delivers its means, complete_step()
// updates scales and sparsity. Between the two nothing is in flight, and a state can be captured.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gradient/in_flight_step.h"
#include "gradient/layout.h"
#include "gradient/reducer_state.h"
#include "gradient/sparse/sparsity.h"
#include "gradient/wire/wire.h"
#include "sluice/analysis/timeline.h"
#include "sluice/communicator.h"
#include "sluice/status.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/version.h"

namespace sluice::gradient {

class SLUICE_API Reducer {
 public:
  // Every rank must call it with the same gradients and options; otherwise every rank throws an
  // Error that names the first difference. Later collectives of `communicator` and those of the
  // reducer are independent.
  Reducer(Communicator communicator, std::vector<GradientSpec> gradients, GradientOptions options);
  ~Reducer();
  Reducer(const Reducer&) = delete;
  Reducer& operator=(const Reducer&) = delete;

  std::size_t size() const { return gradients_.size(); }
  // The memory of gradient i in the step under way. Zero at first; nothing else clears it.
  std::byte* slot(std::size_t i) { return pools_[current_].data() + bucketing_->layout.offset(i); }
  // Changes when slots have moved, except by the swap of double buffering.
  std::uint64_t layout_version() const { return layout_version_; }
  // The slot is written; it must not be changed until finish(). Throws Error if it was already
  // marked since the last finish().
  void mark_ready(std::size_t i);

  // Multiply the loss of the step under way by it; finish() divides the gradients by it.
  double loss_scale() const { return loss_scale_.value(); }

  // Sends all buckets that have not been sent, and waits for the means: of this step, or with
  // double buffering of the step before. Throws Error, as Work::wait() does.
  FinishedStep finish();
  // Double buffering: waits for the means of the last step, which finish() only started. `empty` if
  // there is none. REQUIRES: nothing was marked since.
  FinishedStep flush();

  // After a finish() or flush() that was not `empty` or `skipped`, until the next mark_ready(). The
  // same memory as slot(i).
  std::byte* result(std::size_t i) { return slot(i); }
  // Whether any rank had a gradient i in the steps that result(i) sums up.
  bool used(std::size_t i) const { return used_[i]; }

  // The elements of gradient i that arrived, in order: all, or in a sparse step some chunks.
  std::span<const GradientPart> received(std::size_t i) const {
    return sparse_.sparsity().received(i);
  }

  // In sparse steps gradient i becomes g + decay * weights, so that decay waits in the residual
  // like the gradient. It counts from the next mark_ready(i) on. `weights` has the elements of the
  // slot, and must not change from mark_ready(i) to the end of finish(). Null: no decay. A rank
  // without a gradient in a step adds no decay either.
  void set_decay(std::size_t i, const float* weights, float decay) {
    sparse_.set_decay(i, weights, decay);
  }
  // Whether result(i) includes that decay; false after dense steps, and for gradients that are
  // always sent whole.
  bool holds_decay(std::size_t i) const { return sparse_.holds_decay(i); }

  // The residual of this rank, in the order of chunks; empty without sparsity. REQUIRES: no step is
  // in flight.
  std::span<float> residual() { return sparse_.residual(); }

  // Between two steps. With double buffering it waits for the step in flight and keeps its result,
  // so that the run continues with the same bits. capture() reuses the memory of `to`. Throws
  // Error, as Work::wait() does, and if a gradient was marked since finish().
  void capture(ReducerState& to);
  ReducerState state();
  // Continues from a captured state; the number of ranks may differ. Every rank must call it.
  // Throws Error that names the first difference if gradients or options differ. REQUIRES: no step
  // was begun.
  void restore(const ReducerState& from);

  // From the next step on, records when its buckets waited, were sent and arrived. `timeline` must
  // outlive the reducer. Null: stop recording.
  void set_timeline(Timeline* timeline) { timeline_ = timeline; }

 private:
  // Everything that depends on the order of slots.
  struct Bucketing {
    Bucketing(const Reducer& owner, std::vector<std::size_t> order);
    PoolLayout layout;
    StepContext step;
    BucketList list;
    Readiness readiness;
    InFlightStep in_flight;
  };

  FinishedStep finish_step();
  void begin_step(double loss_scale);
  void clear_unmarked();
  void send_rest();
  bool in_flight() const { return bucketing_->in_flight.begun() || decision_.has_value(); }
  void await_step(const char* waiting);
  FinishedStep complete_step();
  WireConversion conversion(double loss_scale) const;
  void capture_in_flight(MeanInFlight& to);
  void restore_in_flight(const MeanInFlight& from);
  void make_buckets();
  void plan_next();
  void record_users(std::size_t i, int users);
  void reorder_slots(const std::vector<std::size_t>& seen);

  std::vector<GradientSpec> gradients_;
  GradientOptions options_;
  std::vector<std::string> description_;
  SparseGradients sparse_;
  // The hooks are in here. They must outlive the pools and communicator handles below.
  std::unique_ptr<Bucketing> bucketing_;
  Communicator communicator_;
  WireType wire_ = WireType::F32;
  std::optional<WireBuffer> wire_buffer_;
  std::vector<Pool> pools_;
  std::size_t current_ = 0;  // the pool that has the slots
  std::uint64_t layout_version_ = 1;
  bool observed_ = false;  // the order of slots is rank 0's
  LossScale loss_scale_;
  WireScale wire_scale_;
  std::vector<bool> used_;
  std::vector<bool> warned_;                  // that some rank did not have it
  std::vector<bool> ever_used_;               // in some step
  std::vector<OverflowCounts> counts_;        // by rank
  std::optional<OverflowDecision> decision_;  // of a step that is not complete
  Timeline* timeline_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace sluice::gradient
