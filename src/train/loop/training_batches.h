// training_batches.h - the batches of a rank in a training, in order; and batches as tensors.
//
// Loading does not stop between epochs: batches are read ahead, also those of the next epoch.
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

// Options to load the images of a recipe. `threads` below 0: none for images in memory, else one.
data::LoaderOptions plain_loading(const recipe::Recipe& recipe, const data::Data& data,
                                  const data::Dataset& set, int threads);
data::LoaderOptions augmented_loading(const recipe::Recipe& recipe, const data::Data& data,
                                      int threads);
// Validation images look the same at every rank and in every epoch.
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
  int part = 0;  // which of the step's batches
  bool operator==(const BatchPosition&) const = default;
};

// The batches of a rank, numbered from the first step of the training on.
// Thread-safety: immutable.
class BatchNumbers {
 public:
  // `epoch_table` must outlive it.
  explicit BatchNumbers(const recipe::EpochTable& epoch_table);

  // The first batch of a step. For step epoch_table.steps: the number of all batches.
  std::int64_t first_of(std::int64_t step) const;
  // REQUIRES: 0 <= number < first_of(epoch_table.steps).
  BatchPosition position_of(std::int64_t number) const;

 private:
  const recipe::EpochTable* epoch_table_;
  std::vector<std::int64_t> firsts_;  // the first batch, by epoch; then the number of all batches
};

struct TrainingBatchesOptions {
  const recipe::Recipe& recipe;
  const recipe::EpochTable& epoch_table;
  const data::Data& data;
  int rank = 0;
  int loader_threads = -1;  // below 0: none for images in memory, else one
  std::int64_t first_step = 0;
};

// Thread-safety: one thread at a time.
class TrainingBatches {
 public:
  // Recipe, epoch table and data must outlive it.
  explicit TrainingBatches(const TrainingBatchesOptions& options);

  // Returns the next batch, which is valid until the next call. REQUIRES: the last batch of the
  // last step has not been returned.
  Result<const data::Batch*> next();

  // A sentence for each image that was left out so far.
  std::vector<std::string> skipped() const;

 private:
  // The epochs with augmentation, or those after them without it.
  struct Phase {
    Phase(const TrainingBatchesOptions& options, const BatchNumbers& numbers, bool augmented,
          std::int64_t first, std::int64_t last);
    data::Sampler sampler;
    data::Loader loader;
  };

  BatchNumbers numbers_;
  std::vector<std::unique_ptr<Phase>> phases_;  // the current phase and those after it
  std::vector<std::string> skipped_;            // images of earlier phases
};

}  // namespace sluice::train
