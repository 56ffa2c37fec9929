#include "data/loader/batcher.h"

#include <algorithm>
#include <utility>

#include "base/format.h"

namespace sluice::data {

Batcher::Batcher(const Dataset& dataset, BatcherOptions options)
    : dataset_{&dataset}, options_{std::move(options)} {}

Status Batcher::fill(std::uint64_t epoch, std::span<const std::size_t> samples, Batch& batch) {
  batch.count = 0;
  batch.labels.resize(samples.size());
  for (const std::size_t sample : samples) {
    const Status status = dataset_->decode(sample, image_);
    if (!status.ok()) {
      if (std::find(skipped_.begin(), skipped_.end(), status.message()) == skipped_.end()) {
        skipped_.push_back(status.message());
      }
      continue;
    }
    if (batch.count == 0) {
      batch.channels = image_.channels;
      batch.height = image_.height;
      batch.width = image_.width;
      batch.images.resize(samples.size() * image_.size());
    } else if (image_.channels != batch.channels || image_.height != batch.height ||
               image_.width != batch.width) {
      return {Code::InvalidInput,
              base::format("sample {} is {}x{}, others of its batch are {}x{}", sample,
                           image_.width, image_.height, batch.width, batch.height)};
    }
    View view;
    int padding = 0;
    if (options_.augmentation) {
      view = random_view(*options_.augmentation, options_.seed, epoch, sample);
      padding = options_.augmentation->padding;
    }
    render(planes_of(image_), options_.normalization, padding, view,
           batch.images.data() + batch.count * image_.size());
    batch.labels[batch.count++] = dataset_->label(sample);
  }
  if (batch.count == 0 && !samples.empty()) {
    return {Code::InvalidInput,
            base::format("none of a batch's {} images can be used: {}", samples.size(),
                         skipped_.empty() ? "" : skipped_.back())};
  }
  return {};
}

}  // namespace sluice::data
