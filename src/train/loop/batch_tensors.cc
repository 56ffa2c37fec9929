#include "train/loop/batch_tensors.h"

#include <torch/csrc/autograd/generated/variable_factories.h>

namespace sluice::train {

BatchTensors tensors_over(const data::Batch& batch) {
  // libtorch wants the memory writable, and only reads it.
  auto* const images = const_cast<float*>(batch.images.data());
  auto* const labels = const_cast<std::int64_t*>(batch.labels.data());
  const auto count = static_cast<std::int64_t>(batch.count);
  return {torch::from_blob(images, {count, batch.channels, batch.height, batch.width}),
          torch::from_blob(labels, {count}, torch::kLong)};
}

}  // namespace sluice::train
