// momentum_update.h - the inside of a MomentumOptimizer, for its subclasses and ModelReducer.
#pragma once

#include <torch/torch.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "gradient/layout.h"
#include "libtorch/parameters.h"
#include "sluice/torch/momentum_optimizer.h"
#include "sluice/types.h"

namespace sluice {
namespace libtorch {

// The elements of one parameter's gradient that the step under way received.
struct ReceivedGradient {
  bool whole = true;
  // The received elements in memory order, as disjoint parts. A part covers the same elements
  // whenever it arrives. If `whole`: all parts, or an empty span if the gradient is never sent in
  // parts. Valid until the next step.
  std::span<const gradient::GradientPart> parts;
  // The gradient already includes weight decay, which was added before sending.
  bool decayed = false;
};

class GradientSource {
 public:
  virtual ~GradientSource() = default;
  virtual ReceivedGradient received(const torch::Tensor& parameter) const = 0;
};

// The options of one parameter group. torch's schedulers change its learning rate.
class GroupOptions : public torch::optim::OptimizerCloneableOptions<GroupOptions> {
 public:
  explicit GroupOptions(double lr) : lr_{lr} {}
  double get_lr() const override { return lr_; }
  void set_lr(const double lr) override { lr_ = lr; }

 private:
  double lr_;
};

struct MomentumRule {
  double momentum = 0;
  double weight_decay = 0;
  bool decay_one_dimensional = true;
  bool nesterov = false;
  LearningRateMode rate_place = LearningRateMode::Outside;

  double weight_decay_of(const torch::Tensor& parameter) const {
    return parameter.dim() < 2 && !decay_one_dimensional ? 0 : weight_decay;
  }
};

// The defaults() of a MomentumOptimizer. Parameter groups get clones of the GroupOptions part.
struct MomentumOptions final : GroupOptions {
  MomentumOptions(double lr, const MomentumRule& its_rule) : GroupOptions{lr}, rule{its_rule} {}
  MomentumRule rule;
  std::shared_ptr<const GradientSource> source;  // null: all gradients are whole
};

inline MomentumOptions& options_of(MomentumOptimizer& optimizer) {
  return static_cast<MomentumOptions&>(optimizer.defaults());
}

// The update of one parameter in the step under way.
struct ParameterUpdate {
  std::size_t index = 0;  // among all parameters
  torch::Tensor parameter;
  torch::Tensor velocity;
  torch::Tensor gradient;
  ReceivedGradient received;
  double lr = 0;
  double weight_decay = 0;  // 0 if the gradient already includes it
  double scale = 1;         // of the gradient and its decay
  // The type of the three tensors if all are on the CPU, with the same strides and without gaps.
  std::optional<DataType> flat;
};

// Returns a part of a tensor. REQUIRES: the tensor has no gaps between its elements in memory.
torch::Tensor part_of(const torch::Tensor& tensor, const gradient::GradientPart& part);

}  // namespace libtorch

// The state of a MomentumOptimizer, and how a subclass differs from Sgd.
struct MomentumOptimizer::Impl {
  virtual ~Impl() = default;

  // Sets the scale of every update, or replaces its gradient.
  virtual void scale() {}
  // Adds the state of the subclass: everything besides velocities.
  virtual void add_state(libtorch::NamedTensors& /*to*/) const {}
  // Reads what add_state() added. REQUIRES: `velocities` has one entry per parameter.
  virtual void load(torch::serialize::InputArchive& /*archive*/) {}

  std::vector<torch::Tensor> velocities;  // by parameter
  std::vector<torch::Tensor> gradients;   // copies, where strides differ from the parameter's
  std::vector<libtorch::ParameterUpdate> updates;  // of the step under way
};

}  // namespace sluice
