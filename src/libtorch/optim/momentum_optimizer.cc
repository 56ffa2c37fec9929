#include "sluice/torch/momentum_optimizer.h"

#include <ATen/Parallel.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <optional>
#include <span>
#include <utility>

#include "base/format.h"
#include "kernels/optimizer.h"
#include "libtorch/optim/momentum_update.h"
#include "sluice/status.h"
#include "sluice/torch/sgd.h"
#include "sluice/types.h"

namespace sluice {
namespace {

using gradient::GradientPart;
using libtorch::ParameterUpdate;
using libtorch::ReceivedGradient;

// Below this number of elements a second thread costs more than it saves.
constexpr std::int64_t kGrain = 1 << 16;

// The type of the tensor if the kernels can update it.
std::optional<DataType> flat_type(const torch::Tensor& tensor) {
  if (!tensor.is_cpu() || tensor.layout() != torch::kStrided ||
      !tensor.is_non_overlapping_and_dense()) {
    return std::nullopt;
  }
  const std::optional<DataType> type = libtorch::data_type(tensor.scalar_type());
  return type == DataType::F32 || type == DataType::F64 ? type : std::nullopt;
}

bool same_format(const torch::Tensor& tensor, const torch::Tensor& other) {
  return tensor.layout() == other.layout() && tensor.scalar_type() == other.scalar_type() &&
         tensor.device() == other.device() && tensor.strides() == other.strides();
}

// The same update as the kernel, in tensor operations: for other devices and types.
void update_tensors(torch::Tensor parameter, torch::Tensor velocity, const torch::Tensor& gradient,
                    const kernels::MomentumStep& step) {
  torch::Tensor change = gradient.mul(step.ratio);
  if (step.decay != 0) change.add_(parameter, step.ratio * step.decay);
  const double outside = step.folded ? 1 : step.learning_rate;
  if (step.folded) change.mul_(step.learning_rate);
  velocity.mul_(step.momentum).add_(change);
  parameter.add_(step.nesterov ? change.add_(velocity, step.momentum) : velocity, -outside);
}

// Completes an update. If the gradient's strides differ from the parameter's, uses a copy of it.
ParameterUpdate update_of(ParameterUpdate update, torch::Tensor& copy) {
  const torch::Tensor& parameter = update.parameter;
  if (!same_format(update.gradient, parameter)) {
    if (!copy.defined()) copy = torch::empty_like(update.velocity);
    update.gradient = copy.copy_(update.gradient);
  }
  if (same_format(update.velocity, parameter) && same_format(update.gradient, parameter))
    update.flat = flat_type(parameter);
  if (!update.received.whole && !parameter.is_non_overlapping_and_dense()) {
    throw Error{Status{Code::InvalidArgument,
                       "a parameter whose elements have gaps between them in memory cannot be "
                       "updated in part: train it without sparse gradients"}};
  }
  return update;
}

void apply(ParameterUpdate& update, const libtorch::MomentumRule& rule) {
  const kernels::MomentumStep step{.learning_rate = update.lr,
                                   .momentum = rule.momentum,
                                   .decay = update.weight_decay,
                                   .ratio = update.scale,
                                   .nesterov = rule.nesterov,
                                   .folded = rule.rate_place == LearningRateMode::Folded};
  if (!update.flat && update.received.whole) {
    update_tensors(update.parameter, update.velocity, update.gradient, step);
    return;
  }
  const GradientPart all{0, static_cast<std::size_t>(update.parameter.numel())};
  const std::span<const GradientPart> parts =
      update.received.whole ? std::span{&all, 1} : update.received.parts;
  if (!update.flat) {
    for (const GradientPart& part : parts) {
      update_tensors(libtorch::part_of(update.parameter, part),
                     libtorch::part_of(update.velocity, part),
                     libtorch::part_of(update.gradient, part), step);
    }
    return;
  }
  const std::size_t width = size_of(*update.flat);
  auto* const parameter = static_cast<std::byte*>(update.parameter.data_ptr());
  auto* const velocity = static_cast<std::byte*>(update.velocity.data_ptr());
  const auto* const gradient = static_cast<const std::byte*>(update.gradient.data_ptr());
  for (const GradientPart& part : parts) {
    const auto first = static_cast<std::int64_t>(part.first);
    at::parallel_for(first, first + static_cast<std::int64_t>(part.count), kGrain,
                     [&](std::int64_t begin, std::int64_t end) {
                       const std::size_t offset = static_cast<std::size_t>(begin) * width;
                       kernels::momentum_update(*update.flat, parameter + offset, velocity + offset,
                                                gradient + offset,
                                                static_cast<std::size_t>(end - begin), step);
                     });
  }
  update.parameter.unsafeGetTensorImpl()->bump_version();
}

}  // namespace

namespace libtorch {

torch::Tensor part_of(const torch::Tensor& tensor, const GradientPart& part) {
  const auto first = static_cast<std::int64_t>(part.first);
  return tensor.as_strided({static_cast<std::int64_t>(part.count)}, {1},
                           tensor.storage_offset() + first);
}

}  // namespace libtorch

MomentumOptimizer::MomentumOptimizer(std::vector<torch::Tensor> parameters,
                                     std::unique_ptr<torch::optim::OptimizerOptions> options,
                                     std::unique_ptr<Impl> impl)
    : torch::optim::Optimizer{std::move(parameters), std::move(options)}, impl_{std::move(impl)} {}

MomentumOptimizer::~MomentumOptimizer() = default;

void MomentumOptimizer::set_lr(double lr) {
  for (torch::optim::OptimizerParamGroup& group : param_groups()) group.options().set_lr(lr);
}

void MomentumOptimizer::zero_grad(bool set_to_none) {
  const torch::NoGradGuard no_grad;
  for (torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (torch::Tensor& parameter : group.params()) {
      torch::Tensor& gradient = parameter.mutable_grad();
      if (!gradient.defined()) continue;
      if (set_to_none) {
        gradient.reset();
      } else {
        if (gradient.requires_grad()) gradient = gradient.detach();
        gradient.zero_();
      }
    }
  }
}

const std::vector<torch::Tensor>& MomentumOptimizer::velocities() {
  const torch::NoGradGuard no_grad;
  std::vector<torch::Tensor>& velocities = impl_->velocities;
  std::size_t known = 0;
  for (const torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      if (known++ < velocities.size()) continue;
      velocities.push_back(torch::zeros_like(parameter, torch::MemoryFormat::Preserve));
    }
  }
  impl_->gradients.resize(velocities.size());
  return velocities;
}

torch::Tensor MomentumOptimizer::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure != nullptr) {
    const torch::AutoGradMode grad{true};
    loss = closure();
  }
  const torch::NoGradGuard no_grad;
  velocities();
  const libtorch::MomentumOptions& options = libtorch::options_of(*this);
  std::vector<ParameterUpdate>& updates = impl_->updates;
  updates.clear();
  std::size_t index = 0;
  for (const torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      const std::size_t i = index++;
      if (!parameter.grad().defined()) continue;
      ReceivedGradient received;
      if (options.source != nullptr) received = options.source->received(parameter);
      if (!received.whole && received.parts.empty()) continue;
      updates.push_back(update_of(
          {.index = i,
           .parameter = parameter,
           .velocity = impl_->velocities[i],
           .gradient = parameter.grad(),
           .received = received,
           .lr = group.options().get_lr(),
           .weight_decay = received.decayed ? 0 : options.rule.weight_decay_of(parameter)},
          impl_->gradients[i]));
    }
  }
  impl_->scale();
  for (ParameterUpdate& update : updates) apply(update, options.rule);
  updates.clear();  // releases the tensors
  return loss;
}

libtorch::NamedTensors MomentumOptimizer::state_tensors() const {
  libtorch::NamedTensors tensors;
  for (const torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      const std::size_t i = tensors.size();
      tensors.emplace_back(base::format("velocity_{}", i),
                           i < impl_->velocities.size()
                               ? impl_->velocities[i]
                               : torch::zeros_like(parameter, torch::MemoryFormat::Preserve));
    }
  }
  impl_->add_state(tensors);
  return tensors;
}

void MomentumOptimizer::save(torch::serialize::OutputArchive& archive) const {
  for (const auto& [name, tensor] : state_tensors()) archive.write(name, tensor, true);
}

void MomentumOptimizer::load(torch::serialize::InputArchive& archive) {
  const torch::NoGradGuard no_grad;
  velocities();
  for (std::size_t i = 0; i < impl_->velocities.size(); ++i) {
    torch::Tensor stored;
    if (!archive.try_read(base::format("velocity_{}", i), stored, true)) {
      throw Error{Status{Code::InvalidInput,
                         base::format("the saved optimizer has no velocity of parameter {}: it was "
                                      "saved for another model",
                                      i)}};
    }
    torch::Tensor& velocity = impl_->velocities[i];
    if (stored.sizes() != velocity.sizes()) {
      throw Error{
          Status{Code::InvalidInput,
                 base::format("the saved velocity of parameter {} has another shape: it was "
                              "saved for another model",
                              i)}};
    }
    velocity.copy_(stored);
  }
  impl_->load(archive);
}

Sgd::Sgd(std::vector<torch::Tensor> parameters, const SgdOptions& options)
    : MomentumOptimizer{
          std::move(parameters),
          std::make_unique<libtorch::MomentumOptions>(
              options.lr,
              libtorch::MomentumRule{.momentum = options.momentum,
                                     .weight_decay = options.weight_decay,
                                     .decay_one_dimensional = options.decay_one_dimensional,
                                     .nesterov = options.nesterov,
                                     .rate_place = options.momentum_correction
                                                       ? LearningRateMode::Outside
                                                       : options.rate_place}),
          std::make_unique<Impl>()} {}

}  // namespace sluice
