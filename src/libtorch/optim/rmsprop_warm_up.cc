#include "sluice/torch/rmsprop_warm_up.h"

#include <torch/torch.h>

#include <cmath>
#include <utility>

#include "base/format.h"
#include "libtorch/optim/momentum_update.h"
#include "sluice/status.h"

namespace sluice {

struct RmspropWarmUp::Impl final : MomentumOptimizer::Impl {
  explicit Impl(const RmspropWarmUpOptions& its_options) : options{its_options} {}

  double sgd_part(double at_epoch) const;
  void scale() override;
  void scale(libtorch::ParameterUpdate& update, double sgd);
  void add_state(libtorch::NamedTensors& to) const override;
  void load(torch::serialize::InputArchive& archive) override;

  RmspropWarmUpOptions options;
  double epoch = 0;
  std::vector<torch::Tensor> squares;  // q, by parameter
  std::vector<torch::Tensor> scaled;   // gradients, by parameter
};

RmspropWarmUp::RmspropWarmUp(std::vector<torch::Tensor> parameters,
                             const RmspropWarmUpOptions& options)
    : MomentumOptimizer{std::move(parameters),
                        std::make_unique<libtorch::MomentumOptions>(
                            options.lr, libtorch::MomentumRule{.momentum = options.momentum,
                                                               .weight_decay = options.weight_decay,
                                                               .decay_one_dimensional =
                                                                   options.decay_one_dimensional}),
                        std::make_unique<Impl>(options)} {}

RmspropWarmUp::Impl& RmspropWarmUp::impl() const { return static_cast<Impl&>(*impl_); }
void RmspropWarmUp::set_epoch(double epoch) { impl().epoch = epoch; }
double RmspropWarmUp::sgd_part(double epoch) const { return impl().sgd_part(epoch); }

double RmspropWarmUp::Impl::sgd_part(double at_epoch) const {
  const double periods = (at_epoch - options.center) / options.period;
  if (periods < 0) return std::exp(2 * periods) / 2;
  return periods < 0.5 ? 0.5 + periods : 1;
}

void RmspropWarmUp::Impl::scale() {
  const double sgd = sgd_part(epoch);
  if (sgd == 1) {
    squares.clear();
    scaled.clear();
    return;
  }
  squares.resize(velocities.size());
  scaled.resize(velocities.size());
  for (libtorch::ParameterUpdate& update : updates) scale(update, sgd);
}

// Replaces the gradient so that the plain momentum update computes the formula of the header.
void RmspropWarmUp::Impl::scale(libtorch::ParameterUpdate& update, double sgd) {
  if (!update.received.whole) {
    throw Error{Status{Code::InvalidArgument,
                       "RMSprop warm-up needs whole gradients: train without sparse gradients"}};
  }
  if (!(update.lr > 0)) {
    throw Error{
        Status{Code::InvalidArgument,
               base::format("RMSprop warm-up divides by the learning rate, which is {}: set "
                            "a positive one",
                            update.lr)}};
  }
  torch::Tensor& square = squares[update.index];
  torch::Tensor& gradient = scaled[update.index];
  if (!square.defined()) square = torch::zeros_like(update.velocity);
  if (!gradient.defined()) gradient = torch::empty_like(update.velocity);
  gradient.copy_(update.gradient);
  if (update.weight_decay != 0) gradient.add_(update.parameter, update.weight_decay);
  square.mul_(options.rms_decay).addcmul_(gradient, gradient, 1 - options.rms_decay);
  const double rms = (1 - sgd) * options.rms_lr / update.lr;
  gradient.mul_(square.sqrt().add_(options.eps).reciprocal_().mul_(rms).add_(sgd));
  update.gradient = gradient;
  update.weight_decay = 0;
}

void RmspropWarmUp::Impl::add_state(libtorch::NamedTensors& to) const {
  for (std::size_t i = 0; i < squares.size(); ++i) {
    if (squares[i].defined()) to.emplace_back(base::format("square_{}", i), squares[i]);
  }
}

void RmspropWarmUp::Impl::load(torch::serialize::InputArchive& archive) {
  squares.assign(velocities.size(), {});
  for (std::size_t i = 0; i < squares.size(); ++i) {
    torch::Tensor stored;
    if (!archive.try_read(base::format("square_{}", i), stored, true)) continue;
    squares[i] = torch::zeros_like(velocities[i]).copy_(stored);
  }
}

}  // namespace sluice
