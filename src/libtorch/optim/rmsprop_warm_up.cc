#include "sluice/torch/rmsprop_warm_up.h"

#include <torch/torch.h>

#include <cmath>
#include <utility>

#include "base/format.h"
#include "libtorch/optim/update.h"
#include "sluice/status.h"

namespace sluice {

RmspropWarmUp::RmspropWarmUp(std::vector<torch::Tensor> parameters,
                             const RmspropWarmUpOptions& options)
    : MomentumOptimizer{std::move(parameters),
                        options.lr,
                        {.momentum = options.momentum,
                         .weight_decay = options.weight_decay,
                         .decay_one_dimensional = options.decay_one_dimensional}},
      options_{options} {}

double RmspropWarmUp::sgd_part(double epoch) const {
  const double periods = (epoch - options_.center) / options_.period;
  if (periods < 0) return std::exp(2 * periods) / 2;
  return periods < 0.5 ? 0.5 + periods : 1;
}

void RmspropWarmUp::scale(std::vector<Move>& moves) {
  const double sgd = sgd_part(epoch_);
  if (sgd == 1) {
    squares_.clear();
    gradients_.clear();
    return;
  }
  squares_.resize(velocities().size());
  gradients_.resize(squares_.size());
  for (Move& move : moves) scale(move, sgd);
}

// Hands on a gradient that momentum alone then moves as the formula says.
void RmspropWarmUp::scale(Move& move, double sgd) {
  if (!move.arrival.whole) {
    throw Error{Status{Code::InvalidArgument,
                       "RMSprop warm-up needs whole gradients: train without sparse ones"}};
  }
  if (!(move.lr > 0)) {
    throw Error{Status{Code::InvalidArgument,
                       base::format("RMSprop warm-up divides by the rate, which is {}", move.lr)}};
  }
  torch::Tensor& square = squares_[move.index];
  torch::Tensor& gradient = gradients_[move.index];
  if (!square.defined()) square = torch::zeros_like(move.velocity);
  if (!gradient.defined()) gradient = torch::empty_like(move.velocity);
  gradient.copy_(move.gradient);
  if (move.weight_decay != 0) gradient.add_(move.parameter, move.weight_decay);
  square.mul_(options_.rms_decay).addcmul_(gradient, gradient, 1 - options_.rms_decay);
  const double rms = (1 - sgd) * options_.rms_lr / move.lr;
  gradient.mul_(square.sqrt().add_(options_.eps).reciprocal_().mul_(rms).add_(sgd));
  move.gradient = gradient;
  move.weight_decay = 0;
}

MomentumOptimizer::Memory RmspropWarmUp::memory() const {
  Memory memory = MomentumOptimizer::memory();
  for (std::size_t i = 0; i < squares_.size(); ++i) {
    if (squares_[i].defined()) memory.emplace_back(base::format("square_{}", i), squares_[i]);
  }
  return memory;
}

void RmspropWarmUp::load(torch::serialize::InputArchive& archive) {
  const torch::NoGradGuard no_grad;
  MomentumOptimizer::load(archive);
  squares_.assign(velocities().size(), {});
  for (std::size_t i = 0; i < squares_.size(); ++i) {
    torch::Tensor stored;
    if (!archive.try_read(base::format("square_{}", i), stored, true)) continue;
    squares_[i] = torch::zeros_like(velocities()[i]).copy_(stored);
  }
}

}  // namespace sluice
