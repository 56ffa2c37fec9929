// training_batches.h - the batches of a rank in a training, in order, and as tensors.
//
// Loading does not stop between epochs: the next batch is read ahead, whatever its epoch.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/data.h"
#include "data/loader/loader.h"
#include "data/loader/sampler.h"
#include "recipe/epoch_table.h"
#include "recipe/recipe.h"
#include "sluice/status.h"

namespace sluice::train {

// How the images of a recipe are loaded. `threads` below 0: none for images in memory, else one.
data::LoaderOptions plain_loading(const recipe::Recipe& recipe, const data::Data& data,
                                  const data::Dataset& set, int threads);
data::LoaderOptions augmented_loading(const recipe::Recipe& recipe, const data::Data& data,
                                      int threads);
// Validation images are the same at every rank and in every epoch.
data::LoaderOptions validation_loading(const recipe::Recipe& recipe, const data::Data& data,
                                       int threads);

// Tensors over the memory of a batch, without a copy; valid as long as the batch is.
struct BatchTensors {
  torch::Tensor images;  // count x channels x height x width
  torch::Tensor labels;  // count
};
BatchTensors tensors_over(const data::Batch& batch);

struct BatchPosition {
  std::int64_t step = 0;
  int part = 0;  // of the batches of the step
  bool operator==(const BatchPosition&) const = default;
};

// The batches of a rank, numbered from the first step of the training on.
// Thread-safety: immutable.
class BatchNumbers {
 public:
  // `plan` must outlive it.
  explicit BatchNumbers(const recipe::EpochTable& plan);

  // The first batch of a step. At plan.steps: the number of all batches.
  std::int64_t first_of(std::int64_t step) const;
  // REQUIRES: 0 <= number < first_of(plan.steps).
  BatchPosition position_of(std::int64_t number) const;

 private:
  const recipe::EpochTable* plan_;
  std::vector<std::int64_t> firsts_;  // by epoch, and after the last
};

struct TrainingBatchesOptions {
  const recipe::Recipe& recipe;
  const recipe::EpochTable& plan;
  const data::Data& data;
  int rank = 0;
  int loader_threads = -1;  // below 0: none for images in memory, else one
  std::int64_t first_step = 0;
};

// Thread-safety: one thread at a time.
class TrainingBatches {
 public:
  // Plan and data must outlive it.
  explicit TrainingBatches(const TrainingBatchesOptions& options);

  // Valid until the next call. REQUIRES: the last batch of the last step has not been taken.
  Result<const data::Batch*> next();

  // A sentence for each image left out so far.
  std::vector<std::string> skipped() const;

 private:
  // The epochs that are augmented, or those after them that are not.
  struct Phase {
    Phase(const TrainingBatchesOptions& options, const BatchNumbers& numbers, bool augmented,
          std::int64_t first, std::int64_t last);
    data::Sampler sampler;
    data::Loader loader;
  };

  BatchNumbers numbers_;
  std::vector<std::unique_ptr<Phase>> phases_;  // the current one and those after it
  std::vector<std::string> skipped_;            // in the phases before
};

}  // namespace sluice::train
