// training_snapshot.h - a copy of the state of a training at one rank, as sections of a checkpoint.
//
// take() reuses the memory of the last snapshot. Rank 0 copies the common part and its own part,
// other ranks only their own.
// Thread-safety: one thread at a time.
#pragma once

#include <torch/types.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "gradient/reducer_state.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/sections.h"

namespace sluice::train {

class TrainingSnapshot {
 public:
  // Throws Error, as Work::wait() does, and the exceptions of libtorch.
  void take(const TrainingState& state, const TrainingObjects& objects, bool with_common);

  // Valid until the next take().
  std::span<const Section> common() const { return common_.sections(); }
  std::span<const Section> own() const { return own_.sections(); }

 private:
  using Named = std::vector<std::pair<std::string, torch::Tensor>>;
  static void copy(const Named& tensors, const char* prefix, std::vector<torch::Tensor>& copies,
                   SectionWriter& to);
  void copy_optimizer(torch::optim::Optimizer& optimizer);

  SectionWriter common_;
  SectionWriter own_;
  gradient::ReducerState reducer_;
  std::vector<torch::Tensor> parameters_;
  std::vector<torch::Tensor> buffers_;
  std::vector<torch::Tensor> optimizer_state_;  // of Sluice's optimizers
  std::vector<std::byte> archive_;              // of any other optimizer
};

// Restores the state that take() copied. `own` may combine the parts of several ranks.
Status restore(const CheckpointPart& common, const CheckpointPart& own,
               const TrainingObjects& objects);
Status restore_weights(const CheckpointPart& common, const CheckpointPart& own,
                       torch::nn::Module& network);
Result<TrainingState> training_state(const CheckpointPart& common);

}  // namespace sluice::train
