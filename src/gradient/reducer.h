// reducer.h - the gradients of a model at one rank: made ready one by one, averaged over all ranks.
//
// All gradients lie in one pool, each in its slot, in the order in which backward makes them. Slots
// that follow each other leave together as a bucket, once all of a bucket are ready and all buckets
// before it have left; the progress thread carries them while backward goes on. Buckets depend on
// slots and options alone, so all ranks send the same ones in the same order.
//
//   for each step:   for each gradient, as backward makes it:  write slot(i); mark_ready(i);
//                    finish();     ->  result(i) holds the mean over all ranks, where used(i)
//
// A slot that was not marked by finish() counts as zero at this rank, whatever it holds; rank 0
// logs once for each gradient that not all ranks had.
//
// The order of slots is at first that of registration, reversed. The first finish() puts them into
// the order in which rank 0 marked them, and so moves slots and results: layout_version() tells.
// With double buffering every finish() that leaves one step on its way swaps the two pools.
//
// Sparse steps (sparsity.h) send the largest chunks of what has come together since each was last
// sent; there result(i) holds the mean of that, and zero elsewhere: arrived(i) tells where.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "gradient/layout.h"
#include "gradient/reducer_state.h"
#include "sluice/analysis/timeline.h"
#include "sluice/communicator.h"
#include "sluice/gradients.h"
#include "sluice/status.h"

namespace sluice::gradient {

class Reducer {
 public:
  // Every rank must call it, with the same gradients and options; one that differs is an error at
  // every rank, which names the first difference. Later collectives of `communicator` and those of
  // the reducer do not disturb each other.
  Reducer(Communicator communicator, std::vector<GradientSpec> gradients, GradientOptions options);
  ~Reducer();

  std::size_t size() const;  // gradients
  // Where gradient i of the step under way belongs. Zero at first; nothing else clears it.
  std::byte* slot(std::size_t i);
  // Changes when slots have moved, other than by the swap of double buffering.
  std::uint64_t layout_version() const;
  // The slot is written, and not to be touched until finish(). Throws Error where it was marked
  // since the last finish() already.
  void mark_ready(std::size_t i);

  // What the loss of the step under way is to be multiplied by; finish() divides by it.
  double loss_scale() const;

  // Sends what has not left, and waits for the means: of this step, with double buffering of the
  // step before. Throws Error, as Work::wait() does.
  FinishedStep finish();
  // With double buffering: waits for the means of the last step, which finish() has only started.
  // `empty` where there is none. REQUIRES: nothing was marked since.
  FinishedStep flush();

  // After a finish() or flush() that was not `empty` or `skipped`, until the next mark_ready().
  // This is also where slot(i) is.
  std::byte* result(std::size_t i);
  // Whether any rank had a gradient for it, now or when what arrived was held back.
  bool used(std::size_t i) const;

  // Which elements of it arrived, in order: all of them, or in a sparse step some chunks, and for
  // each how many steps had been held back for it.
  std::span<const GradientPart> arrived(std::size_t i) const;

  // In a sparse step gradient i is g + decay * weights, so that decay waits as long as the gradient
  // does; from the next mark_ready(i) on. `weights` has an element for each of the slot's, and does
  // not change from mark_ready(i) to the end of finish(). Null: no decay. A rank that has no
  // gradient in a step adds no decay to it either.
  void set_decay(std::size_t i, const float* weights, float decay);
  // Whether result(i) holds that decay; false of dense steps, and of gradients that are always sent
  // whole.
  bool holds_decay(std::size_t i) const;

  // What this rank holds back, chunk by chunk, each in the order of its elements; empty without
  // sparsity. Not while a step is on its way.
  std::span<float> residual();

  // Between two steps. With double buffering it waits for the step on its way, and leaves it there:
  // the run goes on with the same bits. capture() reuses the memory of `to`. Throws Error, as
  // Work::wait() does, and where something was marked since finish().
  void capture(ReducerState& to);
  ReducerState state();
  // Goes on where the captured one was, whatever its number of ranks; every rank must. Throws Error
  // where gradients or options were others, with the first that differs. REQUIRES: no step was
  // begun.
  void restore(const ReducerState& from);

  // From the next step on, when its buckets waited, left and arrived. It must outlive the reducer;
  // null: no more.
  void set_timeline(Timeline* timeline);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::gradient
