#include "train/loop/training_batches.h"

#include <algorithm>

#include "train/loop/loading.h"

namespace sluice::train {

TrainingBatches::CheckpointPart::CheckpointPart(const TrainingBatchesOptions& options,
                                                const BatchNumbers& numbers, bool augmented,
                                                std::int64_t first, std::int64_t last)
    : sampler{options.plan, options.rank, options.recipe.seed},
      loader{*options.data.train,
             augmented ? augmented_loading(options.recipe, options.data, options.loader_threads)
                       : plain_loading(options.recipe, options.data, *options.data.train,
                                       options.loader_threads),
             [this, &numbers](std::int64_t number) {
               const BatchPosition place = numbers.place_of(number);
               return sampler.samples(place.step, place.part);
             },
             first, last} {}

TrainingBatches::TrainingBatches(const TrainingBatchesOptions& options) : numbers_{options.plan} {
  const recipe::EpochTable& plan = options.plan;
  const double augmented_epochs = options.recipe.augmentation_epochs;
  const std::int64_t turn = augmented_epochs > 0 ? plan.step_at(augmented_epochs) : plan.steps;
  const auto add = [&](bool augmented, std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    parts_.push_back(std::make_unique<CheckpointPart>(
        options, numbers_, augmented, numbers_.first_of(first), numbers_.first_of(last)));
  };
  add(true, options.first_step, turn);
  add(false, std::max(options.first_step, turn), plan.steps);
}

Result<const data::Batch*> TrainingBatches::next() {
  Result<const data::Batch*> batch = parts_.front()->loader.next();
  if (!batch.ok() || batch.value() != nullptr || parts_.size() == 1) return batch;
  const std::vector<std::string>& over = parts_.front()->loader.skipped();
  skipped_.insert(skipped_.end(), over.begin(), over.end());
  parts_.erase(parts_.begin());
  return parts_.front()->loader.next();
}

std::vector<std::string> TrainingBatches::skipped() const {
  std::vector<std::string> all = skipped_;
  for (const std::unique_ptr<CheckpointPart>& part : parts_) {
    for (const std::string& sentence : part->loader.skipped()) {
      if (std::find(all.begin(), all.end(), sentence) == all.end()) all.push_back(sentence);
    }
  }
  return all;
}

}  // namespace sluice::train
