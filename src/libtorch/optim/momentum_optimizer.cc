#include "sluice/torch/momentum_optimizer.h"

#include <ATen/Parallel.h>
#include <torch/serialize/archive.h>
#include <torch/utils.h>

#include <optional>
#include <span>
#include <utility>

#include "base/format.h"
#include "kernels/optimizer.h"
#include "libtorch/optim/update.h"
#include "libtorch/scalar_type.h"
#include "sluice/status.h"
#include "sluice/torch/data_parallel.h"
#include "sluice/types.h"

namespace sluice {
namespace {

// Elements from which on another thread is worth waking.
constexpr std::int64_t kGrain = 1 << 16;

// A group's rate, where torch's schedulers look for it.
class GroupOptions final : public torch::optim::OptimizerCloneableOptions<GroupOptions> {
 public:
  explicit GroupOptions(double lr) : lr_{lr} {}
  double get_lr() const override { return lr_; }
  void set_lr(const double lr) override { lr_ = lr; }

 private:
  double lr_;
};

bool one_dimensional(const torch::Tensor& parameter) { return parameter.dim() < 2; }

// The type of a tensor that the kernels can update.
std::optional<DataType> flat_type(const torch::Tensor& tensor) {
  if (!tensor.is_cpu() || tensor.layout() != torch::kStrided ||
      !tensor.is_non_overlapping_and_dense()) {
    return std::nullopt;
  }
  const std::optional<DataType> type = libtorch::data_type(tensor.scalar_type());
  return type == DataType::F32 || type == DataType::F64 ? type : std::nullopt;
}

bool lies_like(const torch::Tensor& tensor, const torch::Tensor& other) {
  return tensor.layout() == other.layout() && tensor.scalar_type() == other.scalar_type() &&
         tensor.device() == other.device() && tensor.strides() == other.strides();
}

// What the kernel does, in words of tensors: for other devices and types.
void move_tensors(torch::Tensor parameter, torch::Tensor velocity, const torch::Tensor& gradient,
                  const kernels::MomentumStep& step) {
  torch::Tensor change = gradient.mul(step.ratio);
  if (step.decay != 0) change.add_(parameter, step.ratio * step.decay);
  const double outside = step.folded ? 1 : step.learning_rate;
  if (step.folded) change.mul_(step.learning_rate);
  velocity.mul_(step.momentum).add_(change);
  parameter.add_(step.nesterov ? change.add_(velocity, step.momentum) : velocity, -outside);
}

}  // namespace

namespace libtorch {

torch::Tensor memory_of(const torch::Tensor& tensor, const GradientPart& part) {
  const auto first = static_cast<std::int64_t>(part.first);
  return tensor.as_strided({static_cast<std::int64_t>(part.count)}, {1},
                           tensor.storage_offset() + first);
}

}  // namespace libtorch

MomentumOptimizer::MomentumOptimizer(std::vector<torch::Tensor> parameters, double lr,
                                     const Rule& rule)
    : torch::optim::Optimizer{std::move(parameters), std::make_unique<GroupOptions>(lr)},
      rule_{rule} {}

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

void MomentumOptimizer::follow(DataParallel& parallel) {
  set_arrivals(parallel.arrivals());
  for (const torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (const torch::Tensor& parameter : group.params())
      parallel.set_decay(parameter, weight_decay(parameter));
  }
}

void MomentumOptimizer::set_arrivals(std::shared_ptr<const Arrivals> arrivals) {
  arrivals_ = std::move(arrivals);
}

double MomentumOptimizer::weight_decay(const torch::Tensor& parameter) const {
  return one_dimensional(parameter) && !rule_.decay_one_dimensional ? 0 : rule_.weight_decay;
}

// Groups may have been added since the last step.
void MomentumOptimizer::add_velocities() {
  std::size_t known = 0;
  for (const torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      if (known++ < velocities_.size()) continue;
      velocities_.push_back(torch::zeros_like(parameter, torch::MemoryFormat::Preserve));
      gradients_.emplace_back();
    }
  }
}

const std::vector<torch::Tensor>& MomentumOptimizer::velocities() {
  const torch::NoGradGuard no_grad;
  add_velocities();
  return velocities_;
}

// The moves of this step, from what gradients there are.
void MomentumOptimizer::collect() {
  add_velocities();
  moves_.clear();
  std::size_t i = 0;
  for (const torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      const std::size_t index = i++;
      const torch::Tensor& gradient = parameter.grad();
      if (!gradient.defined()) continue;
      const Arrival arrival = arrivals_ == nullptr ? Arrival{} : arrivals_->of(parameter);
      if (!arrival.whole && arrival.parts.empty()) continue;
      Move move{.index = index,
                .parameter = parameter,
                .velocity = velocities_[index],
                .gradient = gradient,
                .arrival = arrival,
                .lr = group.options().get_lr(),
                .weight_decay = arrival.decayed ? 0 : weight_decay(parameter)};
      if (!lies_like(gradient, parameter)) {
        torch::Tensor& copy = gradients_[index];
        if (!copy.defined()) copy = torch::empty_like(velocities_[index]);
        move.gradient = copy.copy_(gradient);
      }
      if (lies_like(move.velocity, parameter) && lies_like(move.gradient, parameter)) {
        move.flat = flat_type(parameter);
      }
      if (!arrival.whole && !parameter.is_non_overlapping_and_dense()) {
        throw Error{Status{Code::InvalidArgument,
                           "a parameter whose elements do not fill their memory cannot be updated "
                           "in part: train it without sparse gradients"}};
      }
      moves_.push_back(std::move(move));
    }
  }
}

void MomentumOptimizer::scale(std::vector<Move>&) {}

torch::Tensor MomentumOptimizer::step(LossClosure closure) {
  torch::Tensor loss;
  if (closure != nullptr) {
    const torch::AutoGradMode grad{true};
    loss = closure();
  }
  const torch::NoGradGuard no_grad;
  collect();
  scale(moves_);
  for (Move& move : moves_) apply(move);
  moves_.clear();  // holds no tensor until the next step
  return loss;
}

void MomentumOptimizer::apply(Move& move) const {
  const kernels::MomentumStep step{.learning_rate = move.lr,
                                   .momentum = rule_.momentum,
                                   .decay = move.weight_decay,
                                   .ratio = move.scale,
                                   .nesterov = rule_.nesterov,
                                   .folded = rule_.rate_place == LearningRateMode::Folded};
  const GradientPart all{0, static_cast<std::size_t>(move.parameter.numel())};
  const std::span<const GradientPart> parts =
      move.arrival.whole ? std::span{&all, 1} : move.arrival.parts;
  if (move.flat) {
    const std::size_t width = size_of(*move.flat);
    auto* const parameter = static_cast<std::byte*>(move.parameter.data_ptr());
    auto* const velocity = static_cast<std::byte*>(move.velocity.data_ptr());
    const auto* const gradient = static_cast<const std::byte*>(move.gradient.data_ptr());
    for (const GradientPart& part : parts) {
      const auto first = static_cast<std::int64_t>(part.first);
      at::parallel_for(first, first + static_cast<std::int64_t>(part.count), kGrain,
                       [&](std::int64_t begin, std::int64_t end) {
                         const std::size_t offset = static_cast<std::size_t>(begin) * width;
                         kernels::momentum_update(*move.flat, parameter + offset, velocity + offset,
                                                  gradient + offset,
                                                  static_cast<std::size_t>(end - begin), step);
                       });
    }
    move.parameter.unsafeGetTensorImpl()->bump_version();
    return;
  }
  if (move.arrival.whole) {
    move_tensors(move.parameter, move.velocity, move.gradient, step);
    return;
  }
  for (const GradientPart& part : parts) {
    move_tensors(libtorch::memory_of(move.parameter, part),
                 libtorch::memory_of(move.velocity, part), libtorch::memory_of(move.gradient, part),
                 step);
  }
}

MomentumOptimizer::Memory MomentumOptimizer::memory() const {
  Memory memory;
  for (const torch::optim::OptimizerParamGroup& group : param_groups()) {
    for (const torch::Tensor& parameter : group.params()) {
      const std::size_t i = memory.size();
      memory.emplace_back(base::format("velocity_{}", i),
                          i < velocities_.size()
                              ? velocities_[i]
                              : torch::zeros_like(parameter, torch::MemoryFormat::Preserve));
    }
  }
  return memory;
}

void MomentumOptimizer::save(torch::serialize::OutputArchive& archive) const {
  for (const auto& [name, tensor] : memory()) archive.write(name, tensor, true);
}

void MomentumOptimizer::load(torch::serialize::InputArchive& archive) {
  const torch::NoGradGuard no_grad;
  add_velocities();
  for (std::size_t i = 0; i < velocities_.size(); ++i) {
    torch::Tensor stored;
    if (!archive.try_read(base::format("velocity_{}", i), stored, true)) {
      throw Error{Status{Code::InvalidInput,
                         base::format("the saved optimizer has no velocity of parameter {}: it was "
                                      "saved for another model",
                                      i)}};
    }
    if (stored.sizes() != velocities_[i].sizes()) {
      throw Error{
          Status{Code::InvalidInput,
                 base::format("the saved velocity of parameter {} has another shape: it was "
                              "saved for another model",
                              i)}};
    }
    velocities_[i].copy_(stored);
  }
}

}  // namespace sluice
