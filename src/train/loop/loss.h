// loss.h - how wrong a network's scores are.
#pragma once

#include <torch/types.h>

namespace sluice::train {

// The mean cross entropy of scores (n, classes) against labels (n), where a label's class is meant
// with 1 - smoothing and all classes, its own among them, with smoothing / classes each.
torch::Tensor smoothed_cross_entropy(const torch::Tensor& scores, const torch::Tensor& labels,
                                     double smoothing);

}  // namespace sluice::train
