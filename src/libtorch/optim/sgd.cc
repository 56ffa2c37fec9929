#include "sluice/torch/sgd.h"

#include <utility>

#include "libtorch/optim/update.h"

namespace sluice {

Sgd::Sgd(std::vector<torch::Tensor> parameters, const SgdOptions& options)
    : MomentumOptimizer{std::move(parameters),
                        options.lr,
                        {.momentum = options.momentum,
                         .weight_decay = options.weight_decay,
                         .decay_one_dimensional = options.decay_one_dimensional,
                         .nesterov = options.nesterov,
                         .rate_place = options.momentum_correction ? LearningRateMode::Outside
                                                                   : options.rate_place}} {}

}  // namespace sluice
