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
// A slot that was not marked by finish() counts as zero at this rank.
//
// Thread-safety: one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sluice/communicator.h"
#include "sluice/gradients.h"
#include "sluice/status.h"

namespace sluice {

// A gradient tensor, as all ranks must know it.
struct GradientSpec {
  std::string name;
  std::size_t count = 0;  // elements
  DataType type = DataType::F32;
  bool may_be_sparse = true;  // false: a bias or the like, always sent whole
  bool operator==(const GradientSpec&) const = default;
};

class Reducer {
 public:
  // Every rank must call it, with the same gradients and options; one that differs is an error at
  // every rank, which names the first difference.
  Reducer(Communicator communicator, std::vector<GradientSpec> gradients, GradientOptions options);
  ~Reducer();

  std::size_t size() const;  // gradients
  // Where gradient i of the step under way belongs. Zero at first; nothing else clears it.
  std::byte* slot(std::size_t i);
  // REQUIRES: not marked since the last finish().
  void mark_ready(std::size_t i);

  // What the loss of the step under way is to be multiplied by; finish() divides by it.
  double loss_scale() const;

  // Sends what has not left, and waits for the means: of this step, with double buffering of the
  // step before. Throws Error, as Work::wait() does.
  FinishedStep finish();
  // With double buffering: waits for the means of the last step, which finish() has only started.
  FinishedStep flush();

  // After a finish() that was not `empty` or `skipped`, until the next mark_ready():
  std::byte* result(std::size_t i);
  // Whether any rank had a gradient for it.
  bool used(std::size_t i) const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
