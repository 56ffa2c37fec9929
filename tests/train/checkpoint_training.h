// checkpoint_training.h - a small training that can be saved and resumed at any step.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "libtorch/model_reducer.h"
#include "sluice/torch/momentum_optimizer.h"
#include "tests/libtorch/training.h"
#include "train/checkpoint/checkpoint.h"

namespace sluice::train {

// The network has plain batch norms, whose running statistics differ from rank to rank.
class CheckpointTraining {
 public:
  enum class Optimizer : std::uint8_t { Sgd, Lars, Rmsprop };
  CheckpointTraining(Communicator& comm, const GradientOptions& options,
                     Optimizer kind = Optimizer::Sgd);

  void step(int number);
  TrainingObjects objects() { return {*network, *optimizer, *parallel}; }
  // Returns everything that a step changes: weights, running statistics, velocities.
  libtorch::NamedTensors everything() const;

  libtorch::Network network;
  std::unique_ptr<MomentumOptimizer> optimizer;
  std::optional<libtorch::ModelReducer> parallel;

 private:
  Rank rank_;
  int ranks_;
};

// Returns a state with all members set.
TrainingState saved_state(std::int64_t step);

// All gradient options, by name.
std::map<std::string, GradientOptions> gradient_settings();

}  // namespace sluice::train
