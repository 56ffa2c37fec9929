// batch_tensors.h - a batch as libtorch sees it: over the batch's own memory, nothing is copied.
#pragma once

#include <torch/types.h>

#include "data/loader/batcher.h"

namespace sluice::train {

// Valid as long as the batch is.
struct BatchTensors {
  torch::Tensor images;  // count x channels x height x width
  torch::Tensor labels;  // count
};

BatchTensors tensors_over(const data::Batch& batch);

}  // namespace sluice::train
