// training_snapshot.h - a rank's part of a training at one moment, copied.
//
// Memory is reused from one take() to the next. Rank 0 has both parts, others their own alone.
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
  // Throws Error, as Work::wait() does, and what libtorch throws.
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
  std::vector<torch::Tensor> velocities_;  // and what else an optimizer of Sluice's has
  std::vector<std::byte> archive_;         // of another optimizer
};

// Puts back what was taken. `own` may be made up from several.
Status restore(const CheckpointPart& common, const CheckpointPart& own,
               const TrainingObjects& objects);
Status restore_weights(const CheckpointPart& common, const CheckpointPart& own,
                       torch::nn::Module& network);
Result<TrainingState> training_state(const CheckpointPart& common);

}  // namespace sluice::train
