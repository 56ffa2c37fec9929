// evaluation.h - how often a network is right, counted exactly over all ranks.
//
// Every rank takes its own part of the samples, each sample is in one part, and what is summed are
// whole numbers: the accuracy does not depend on how many ranks there are. Ranks whose parts differ
// in length wait for each other once, at the end.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/data.h"
#include "data/loader/loader.h"
#include "recipe/recipe.h"
#include "sluice/communicator.h"
#include "sluice/status.h"
#include "train/loop/trainer.h"
#include "train/models/models.h"

namespace sluice::train {

// From so many classes on it counts whether the right one is among the five best.
inline constexpr std::size_t kClassesForTop5 = 100;

struct EvaluationCounts {
  std::int64_t samples = 0;  // broken images are none
  std::int64_t right = 0;
  std::int64_t among_5 = 0;
  double loss = 0;  // summed over samples; cross entropy without smoothing
};

// Without when and how long.
EvaluationReport report_of(const EvaluationCounts& counts, const data::Data& data);

// The part of `samples` that is a rank's: all of them in order, nearly equal, in batches.
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
  int batch = 1;                                // a rank's
  int loader_threads = -1;                      // below 0: as the data needs
  std::function<void(std::int64_t done)> tell;  // samples of this rank; may be empty
};

// Of the validation images. The network is in evaluation mode meanwhile, and then in training mode;
// its running statistics are as they were. Every rank must call it. Throws Error, as Work::wait()
// does.
Result<EvaluationCounts> evaluate(const EvaluationTask& task, Communicator& communicator);

}  // namespace sluice::train
