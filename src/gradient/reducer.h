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
// If a slot has not been marked when finish() is called, it counts as zero at this rank, whatever
// it contains. If some rank does not have a gradient, rank 0 logs that once for the gradient.
//
// At first the slots are in reverse order of registration. The first finish() changes that to the
// order in which rank 0 marked them. This moves slots and results, and changes layout_version().
//
// Without double buffering there is one pool, a bucket is sent as soon as possible, and finish()
// waits for all buckets. With double buffering there are two pools: finish() waits for the step
// before, sends all buckets of this step, and swaps the pools. So at most one step is in flight,
// and one InFlightStep serves both pools. The weights may change while a gradient is in flight, so
// its decay is added when it is marked.
//
// Sparse steps (sparse/sparsity.h) send the gradient chunks with the largest residuals. Then
// result(i) is the mean in these chunks, and zero elsewhere; received(i) lists them.
//
// A step ends in two stages: await_step() waits for it and delivers its means, then complete_step()
// updates scales and sparsity. Between the two, nothing is in flight, so a state can be captured.
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
  // Call it when slot(i) is written; the slot must not change until finish(). Throws Error if it
  // was already marked since the last finish().
  void mark_ready(std::size_t i);

  // Multiply the loss of the step under way by it; finish() divides the gradients by it.
  double loss_scale() const { return loss_scale_.value(); }

  // Sends all buckets that have not been sent, and waits for the means of this step, or with double
  // buffering for those of the step before. Throws Error, as Work::wait() does.
  FinishedStep finish();
  // With double buffering, waits for the means of the last step, which finish() only started.
  // Returns `empty` if no step is in flight. REQUIRES: no gradient was marked since finish().
  FinishedStep flush();

  // The mean of gradient i, in the same memory as slot(i). Valid from a finish() or flush() that
  // was neither `empty` nor `skipped` until the next mark_ready().
  std::byte* result(std::size_t i) { return slot(i); }
  // Whether any rank had gradient i in one of the steps that result(i) sums up.
  bool used(std::size_t i) const { return used_[i]; }

  // The elements of gradient i that arrived, in order; in a sparse step not all of them.
  std::span<const GradientPart> received(std::size_t i) const {
    return sparse_.sparsity().received(i);
  }

  // In sparse steps gradient i becomes g + decay * weights, so the residual keeps the decay
  // together with the gradient. Takes effect with the next mark_ready(i). `weights` has as many
  // elements as the slot, and must not change from mark_ready(i) to the end of finish(); null: no
  // decay. A rank without the gradient in a step adds no decay either.
  void set_decay(std::size_t i, const float* weights, float decay) {
    sparse_.set_decay(i, weights, decay);
  }
  // Whether result(i) includes that decay; false after dense steps, and for gradients that are
  // always sent whole.
  bool includes_decay(std::size_t i) const { return sparse_.includes_decay(i); }

  // The residual of this rank, in the order of chunks; empty without sparsity. REQUIRES: no step is
  // in flight.
  std::span<float> residual() { return sparse_.residual(); }

  // Both copy the state between two steps; capture() reuses the memory of `to`. With double
  // buffering they wait for the step in flight and keep its result, so the run continues with the
  // same bits. Throw Error, as Work::wait() does, and also if a gradient was marked since finish().
  void capture(ReducerState& to);
  ReducerState state();
  // Continues from a captured state; the number of ranks may differ. Every rank must call it. If
  // gradients or options differ, throws an Error that names the first difference. REQUIRES: no step
  // has begun.
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
  void await_step(const char* event);
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
  // Contains the hooks that the progress thread calls. They must outlive the pools and communicator
  // handles below.
  std::unique_ptr<Bucketing> bucketing_;
  Communicator communicator_;
  WireType wire_ = WireType::F32;
  std::optional<WireBuffer> wire_buffer_;
  std::vector<Pool> pools_;
  std::size_t current_ = 0;  // index of the pool with the slots of the step under way
  std::uint64_t layout_version_ = 1;
  bool observed_ = false;  // slots are in the order in which rank 0 marked them
  LossScale loss_scale_;
  WireScale wire_scale_;
  std::vector<bool> used_;                    // by gradient, as used() returns it
  std::vector<bool> warned_;                  // by gradient: logged that some rank lacks it
  std::vector<bool> ever_used_;               // by gradient: some rank had it in some step
  std::vector<OverflowCounts> counts_;        // by rank
  std::optional<OverflowDecision> decision_;  // between await_step() and complete_step()
  Timeline* timeline_ = nullptr;
  int exceptions_ = std::uncaught_exceptions();
};

}  // namespace sluice::gradient
