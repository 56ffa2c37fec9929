// momentum_optimizer.h - the base class of Sgd, Lars and RmspropWarmUp.
//
// Each parameter w has a velocity u. Let g be the gradient, wd the weight decay, m the momentum, lr
// the learning rate, and s the scale that an optimizer gives a parameter (1 for Sgd). With
// d = s (g + wd w):
//
//   LearningRateMode::Outside  u = m u + d          w -= lr u           Nesterov: w -= lr (d + m u)
//   LearningRateMode::Folded   u = m u + lr d       w -= u              Nesterov: w -= lr d + m u
//
// The two modes differ only when lr changes. A parameter without a gradient keeps its value and
// velocity. Updates are made in place. Once all velocities exist, steps allocate no memory if the
// parameters are f32 or f64 on the CPU.
//
// torch's learning rate schedulers work with it. Parameter groups may differ only in their learning
// rate. With sparse gradients, pass the optimizer to DataParallel::attach().
//
// Thread-safety: one thread at a time.
#pragma once

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sluice/types.h"
#include "sluice/version.h"

namespace sluice {

class SLUICE_API MomentumOptimizer : public torch::optim::Optimizer {
 public:
  ~MomentumOptimizer() override;

  torch::Tensor step(LossClosure closure = nullptr) override;
  // Behaves the same with every version of libtorch. Resetting gradients is faster than zeroing.
  void zero_grad(bool set_to_none = true);

  // Sets the learning rate of all groups.
  void set_lr(double lr);

  // The velocities, in the order of the parameters, group by group; zero at first. They have the
  // shapes and strides of the parameters.
  const std::vector<torch::Tensor>& velocities();

  // The tensors that save() writes, by name: all state besides weights and learning rate.
  // Velocities are not copied, so later steps change them; they are zero before the first update.
  std::vector<std::pair<std::string, torch::Tensor>> state_tensors() const;
  void save(torch::serialize::OutputArchive& archive) const final;
  void load(torch::serialize::InputArchive& archive) final;

 protected:
  struct Impl;
  MomentumOptimizer(std::vector<torch::Tensor> parameters,
                    std::unique_ptr<torch::optim::OptimizerOptions> options,
                    std::unique_ptr<Impl> impl);

  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice
