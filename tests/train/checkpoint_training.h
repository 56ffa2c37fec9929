// checkpoint_training.h - a small training that can be saved at any step and gone on with.
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

// With plain batch norm, whose running statistics differ from rank to rank.
class CheckpointTraining {
 public:
  enum class Way : std::uint8_t { Sgd, Lars, Rmsprop };
  CheckpointTraining(Communicator& comm, const GradientOptions& options, Way way = Way::Sgd);

  void step(int number);
  TrainingObjects objects() { return {*network, *optimizer, *parallel}; }
  // Weights, running statistics, velocities: all that a step leaves.
  libtorch::NamedTensors everything() const;

  libtorch::Network network;
  std::unique_ptr<MomentumOptimizer> optimizer;
  std::optional<libtorch::ModelReducer> parallel;

 private:
  Rank rank_;
  int ranks_;
};

// Every way in which gradients travel, by name.
std::map<std::string, GradientOptions> ways_to_travel();

}  // namespace sluice::train
