#include "train/loop/training_batches.h"

#include <torch/csrc/autograd/generated/variable_factories.h>

#include <algorithm>
#include <cassert>

#include "data/dataset.h"

namespace sluice::train {
namespace {

int threads_for(const data::Dataset& set, int threads) {
  if (threads >= 0) return threads;
  return dynamic_cast<const data::MemoryDataset*>(&set) != nullptr ? 0 : 1;
}

bool crops(const recipe::Recipe& recipe) {
  return recipe.augmentation == recipe::AugmentationKind::ResizedCrop;
}

}  // namespace

// A recipe that crops photographs at random uses their centre when they are not augmented.
data::LoaderOptions plain_loading(const recipe::Recipe& recipe, const data::Data& data,
                                  const data::Dataset& set, int threads) {
  return {.threads = threads_for(set, threads),
          .view = {.kind = crops(recipe) ? data::ViewKind::CentreCrop : data::ViewKind::Whole},
          .normalization = data.normalization,
          .seed = recipe.seed,
          .image = recipe.image};
}

data::LoaderOptions augmented_loading(const recipe::Recipe& recipe, const data::Data& data,
                                      int threads) {
  data::LoaderOptions options = plain_loading(recipe, data, *data.train, threads);
  if (recipe.augmentation == recipe::AugmentationKind::None) return options;
  options.view = {.kind = crops(recipe) ? data::ViewKind::ResizedCrop : data::ViewKind::Shifted,
                  .padding = recipe.padding,
                  .flip = recipe.flip,
                  .crop = {.least_area = recipe.crop_area.least,
                           .most_area = recipe.crop_area.most,
                           .least_aspect = recipe.crop_aspect.least,
                           .most_aspect = recipe.crop_aspect.most}};
  return options;
}

data::LoaderOptions validation_loading(const recipe::Recipe& recipe, const data::Data& data,
                                       int threads) {
  data::LoaderOptions options = plain_loading(recipe, data, *data.validation, threads);
  options.may_be_empty = true;
  return options;
}

BatchTensors tensors_over(const data::Batch& batch) {
  // from_blob() takes writable memory, but nothing writes to these tensors.
  auto* const images = const_cast<float*>(batch.images.data());
  auto* const labels = const_cast<std::int64_t*>(batch.labels.data());
  const auto count = static_cast<std::int64_t>(batch.count);
  return {torch::from_blob(images, {count, batch.channels, batch.height, batch.width}),
          torch::from_blob(labels, {count}, torch::kLong)};
}

BatchNumbers::BatchNumbers(const recipe::EpochTable& epoch_table)
    : epoch_table_{&epoch_table}, firsts_{0} {
  for (const recipe::EpochRow& epoch : epoch_table.epochs) {
    firsts_.push_back(firsts_.back() + epoch.steps * epoch.accumulate);
  }
}

std::int64_t BatchNumbers::first_of(std::int64_t step) const {
  if (step >= epoch_table_->steps) return firsts_.back();
  const recipe::EpochRow& epoch = epoch_table_->epoch_of(step);
  const auto number = static_cast<std::size_t>(&epoch - epoch_table_->epochs.data());
  return firsts_[number] + (step - epoch.first_step) * epoch.accumulate;
}

BatchPosition BatchNumbers::position_of(std::int64_t number) const {
  assert(number >= 0 && number < firsts_.back());
  const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), number);
  const auto epoch_number = static_cast<std::size_t>(after - firsts_.begin()) - 1;
  const recipe::EpochRow& epoch = epoch_table_->epochs[epoch_number];
  const std::int64_t inside = number - firsts_[epoch_number];
  return {.step = epoch.first_step + inside / epoch.accumulate,
          .part = static_cast<int>(inside % epoch.accumulate)};
}

TrainingBatches::Phase::Phase(const TrainingBatchesOptions& options, const BatchNumbers& numbers,
                              bool augmented, std::int64_t first, std::int64_t last)
    : sampler{options.epoch_table, options.rank, options.recipe.seed},
      loader{*options.data.train,
             augmented ? augmented_loading(options.recipe, options.data, options.loader_threads)
                       : plain_loading(options.recipe, options.data, *options.data.train,
                                       options.loader_threads),
             [this, &numbers](std::int64_t number) {
               const BatchPosition position = numbers.position_of(number);
               return sampler.samples(position.step, position.part);
             },
             first, last} {}

TrainingBatches::TrainingBatches(const TrainingBatchesOptions& options)
    : numbers_{options.epoch_table} {
  const recipe::EpochTable& epoch_table = options.epoch_table;
  const double augmented_epochs = options.recipe.augmentation_epochs;
  const std::int64_t first_plain_step =
      augmented_epochs > 0 ? epoch_table.step_at(augmented_epochs) : epoch_table.steps;
  const auto add = [&](bool augmented, std::int64_t first, std::int64_t last) {
    if (first >= last) return;
    phases_.push_back(std::make_unique<Phase>(options, numbers_, augmented,
                                              numbers_.first_of(first), numbers_.first_of(last)));
  };
  add(true, options.first_step, first_plain_step);
  add(false, std::max(options.first_step, first_plain_step), epoch_table.steps);
}

Result<const data::Batch*> TrainingBatches::next() {
  Result<const data::Batch*> batch = phases_.front()->loader.next();
  if (!batch.ok() || batch.value() != nullptr || phases_.size() == 1) return batch;
  const std::vector<std::string>& skipped = phases_.front()->loader.skipped();
  skipped_.insert(skipped_.end(), skipped.begin(), skipped.end());
  phases_.erase(phases_.begin());
  return phases_.front()->loader.next();
}

std::vector<std::string> TrainingBatches::skipped() const {
  std::vector<std::string> all = skipped_;
  for (const std::unique_ptr<Phase>& phase : phases_) {
    for (const std::string& sentence : phase->loader.skipped()) {
      if (std::find(all.begin(), all.end(), sentence) == all.end()) all.push_back(sentence);
    }
  }
  return all;
}

}  // namespace sluice::train
