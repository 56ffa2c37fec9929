// evaluation.h - the accuracy of a network, counted exactly over all ranks.
//
// Every rank takes its own part of the samples, and each sample is in one part. The sums are whole
// numbers, so the accuracy does not depend on the number of ranks. Ranks wait for each other once,
// at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "data/data.h"
#include "data/loader/loader.h"
#include "recipe/recipe.h"
#include "sluice/communicator.h"
#include "sluice/status.h"
#include "train/loop/trainer.h"
#include "train/models/models.h"

namespace sluice::train {

// The part of the samples that a rank evaluates, in order and in batches. Parts are nearly equal.
class EvaluationSamples {
 public:
  // REQUIRES: batch > 0, 0 <= rank < ranks.
  EvaluationSamples(std::int64_t samples, int batch, int ranks, int rank);

  std::int64_t batches() const;
  std::span<const data::SampleRef> batch(std::int64_t number) const;

 private:
  std::vector<data::SampleRef> own_;
  std::int64_t batch_;
};

struct EvaluationTask {
  Model& network;
  const data::Data& data;
  const recipe::Recipe& recipe;
  int batch = 1;                                  // of a rank
  int loader_threads = -1;                        // below 0: none for images in memory, else one
  std::function<void(std::int64_t done)> report;  // samples of this rank; may be empty
};

// Evaluates the validation images. The network is in evaluation mode meanwhile, and in training
// mode afterwards; its running statistics do not change. The caller adds step, epoch and elapsed
// time to the report. Every rank must call it. Throws Error, as Work::wait() does.
Result<EvaluationReport> evaluate(const EvaluationTask& task, Communicator& communicator);

}  // namespace sluice::train
