// training_batches.h - the batches of a rank in one training, one after the other to its end.
//
// Nothing happens between epochs: what comes next is read ahead, whatever epoch it belongs to.
#pragma once

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
#include "train/loop/batch_numbers.h"

namespace sluice::train {

struct TrainingBatchesOptions {
  const recipe::Recipe& recipe;
  const recipe::EpochTable& plan;
  const data::Data& data;
  int rank = 0;
  int loader_threads = -1;  // below 0: as the data needs
  std::int64_t first_step = 0;
};

// Thread-safety: one thread at a time.
class TrainingBatches {
 public:
  // Plan and data must outlive it.
  explicit TrainingBatches(const TrainingBatchesOptions& options);

  // Valid until the next call. REQUIRES: the last step's last batch has not been taken.
  Result<const data::Batch*> next();

  // Images that were left out so far, a sentence each.
  std::vector<std::string> skipped() const;

 private:
  // Epochs that are augmented, and those after them that are not.
  struct CheckpointPart {
    CheckpointPart(const TrainingBatchesOptions& options, const BatchNumbers& numbers,
                   bool augmented, std::int64_t first, std::int64_t last);
    data::Sampler sampler;
    data::Loader loader;
  };

  BatchNumbers numbers_;
  std::vector<std::unique_ptr<CheckpointPart>>
      parts_;                         // what is left of them, the present one first
  std::vector<std::string> skipped_;  // of parts that are over
};

}  // namespace sluice::train
