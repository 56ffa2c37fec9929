// momentum_optimizer.h - what Sgd and Lars have in common.
//
// Each parameter w has a velocity u. With d the gradient, decayed and scaled (d = s (g + wd w)):
//
//   rate outside       u = m u + d          w -= lr u           Nesterov: w -= lr (d + m u)
//   rate folded in     u = m u + lr d       w -= u              Nesterov: w -= lr d + m u
//
// The two differ when lr changes. A parameter without gradient stands still, velocity and all.
// Updates are made in place, in the memory of the parameter; the steady state allocates nothing
// where parameters are f32 or f64 on the CPU.
//
// It is a torch::optim::Optimizer, and torch's rate schedulers work on it. Groups of parameters may
// differ in their rate alone.
//
// Thread-safety: one thread at a time.
#pragma once

#include <torch/optim/optimizer.h>
#include <torch/types.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "sluice/gradients.h"
#include "sluice/types.h"

namespace sluice {

class DataParallel;

// What of one parameter's gradient is there to be used.
struct Arrival {
  bool whole = true;
  // Elements in the order of the parameter's memory; rising, none in two parts. A part is the same
  // elements whenever it comes. Where it is whole: all of them, or none where it always will be.
  // Valid until the next step.
  std::span<const GradientPart> parts;
  // The gradient holds the weight decay already: it was added before the gradient was sent.
  bool decayed = false;
};

class Arrivals {
 public:
  virtual ~Arrivals() = default;
  // Of the step under way.
  virtual Arrival of(const torch::Tensor& parameter) const = 0;
};

class MomentumOptimizer : public torch::optim::Optimizer {
 public:
  ~MomentumOptimizer() override;

  torch::Tensor step(LossClosure closure = nullptr) override;
  // The same with every version of libtorch. Gradients that are dropped cost less than cleared
  // ones.
  void zero_grad(bool set_to_none = true);

  // Of all groups.
  void set_lr(double lr);

  // Moves what `parallel` hands out: all of it, or with sparse gradients what has arrived. Again
  // after groups were added, and where DataParallel was made anew.
  void follow(DataParallel& parallel);

  // What has arrived at each step() from now on; null: everything.
  void set_arrivals(std::shared_ptr<const Arrivals> arrivals);

  // What a parameter's gradient is decayed with: who sends g + wd w needs to know.
  double weight_decay(const torch::Tensor& parameter) const;

  // In the order of the parameters, group by group; zero at first. Theirs are shape and strides.
  const std::vector<torch::Tensor>& velocities();

  // What steps leave for later ones besides weights and rate, by name: what save() writes. Tensors
  // that go on changing, not copies; zeros for what has not moved yet.
  using Memory = std::vector<std::pair<std::string, torch::Tensor>>;
  virtual Memory memory() const;
  void save(torch::serialize::OutputArchive& archive) const final;
  void load(torch::serialize::InputArchive& archive) override;

 protected:
  struct Rule {
    double momentum = 0;
    double weight_decay = 0;
    bool decay_one_dimensional = true;
    bool nesterov = false;
    LearningRateMode rate_place = LearningRateMode::Outside;
  };
  // A parameter that is about to move.
  struct Move;

  MomentumOptimizer(std::vector<torch::Tensor> parameters, double lr, const Rule& rule);

  // Sets the scale of every move.
  virtual void scale(std::vector<Move>& moves);

 private:
  void collect();
  void apply(Move& move) const;
  void add_velocities();

  Rule rule_;
  std::shared_ptr<const Arrivals> arrivals_;
  std::vector<torch::Tensor> velocities_;
  std::vector<torch::Tensor> gradients_;  // copies of those that lie otherwise than their parameter
  std::vector<Move> moves_;               // of the step under way
};

}  // namespace sluice
