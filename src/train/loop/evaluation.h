// evaluation.h - the accuracy of a network, counted exactly over all ranks.
//
// Each sample is evaluated by exactly one rank. The counts are whole numbers, so the accuracy does
// not depend on the number of ranks. While evaluating, no rank waits for another; their counts are
// added up at the end.
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

// The samples that a rank evaluates, in order and in batches. Ranks have nearly equally many.
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
  int batch = 1;                                  // samples of one rank's batch
  int loader_threads = -1;                        // below 0: none for images in memory, else one
  std::function<void(std::int64_t done)> report;  // gets this rank's samples so far; may be empty
};

// Evaluates the validation images. Sets the network to evaluation mode, and at the end to training
// mode; its running statistics do not change. The caller adds step, epoch and elapsed time to the
// report. Every rank must call it. Throws Error, as Work::wait() does.
Result<EvaluationReport> evaluate(const EvaluationTask& task, Communicator& communicator);

}  // namespace sluice::train
