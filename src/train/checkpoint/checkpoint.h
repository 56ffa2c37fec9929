// checkpoint.h - a training that goes on later, with the same bits or on another number of ranks.
//
//   writer.save(state, objects);                    // quick; written beside training
//   ...
//   auto found = load_latest(folder, communicator); // the newest good one, at every rank
//   if (found.value().checkpoint) found.value().checkpoint->apply(objects);
//
// The same number of ranks goes on with the same bits. Another one goes on with the mean of the old
// ranks' residuals and running statistics at every rank; what was in flight stays as it is. Global
// batch and data are the caller's.
//
// What is written: docs/checkpoints.md.
#pragma once

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libtorch/model_reducer.h"
#include "sluice/communicator.h"
#include "sluice/status.h"
#include "train/checkpoint/checkpoint_file.h"

namespace sluice::train {

// What the caller knows, the same at all ranks.
struct TrainingState {
  std::int64_t step = 0;  // steps done
  std::uint64_t seed = 0;
  std::map<std::string, std::string> settings;  // what a resumed run must not change
  std::map<std::string, std::string> notes;     // what else it wants to know
  double accuracy = -1;  // percent, of these very weights; negative: not evaluated
  double best_accuracy = -1;
  std::int64_t best_step = 0;
};

// What changes in a step: weights and running statistics; velocities and the like; and what
// travels.
struct TrainingObjects {
  torch::nn::Module& network;
  torch::optim::Optimizer& optimizer;
  libtorch::ModelReducer& parallel;
};

class LoadedCheckpoint {
 public:
  LoadedCheckpoint(TrainingState state, CheckpointPart common, CheckpointPart own)
      : state_{std::move(state)}, common_{std::move(common)}, own_{std::move(own)} {}

  const TrainingState& state() const { return state_; }
  int ranks() const { return common_.header().ranks; }  // that wrote it

  // All of it. REQUIRES: `objects` are as made, and have done no step.
  Status apply(const TrainingObjects& objects) const;
  // Weights and running statistics alone.
  Status apply_weights(torch::nn::Module& network) const;

 private:
  TrainingState state_;
  CheckpointPart common_;
  CheckpointPart own_;
};

// Of one checkpoint, for a rank; without: running statistics and residual are the mean over all
// ranks that wrote it. Other ranks' files are not looked at unless they are needed.
Result<LoadedCheckpoint> load_checkpoint(const std::filesystem::path& checkpoint,
                                         std::optional<Rank> own = std::nullopt);

struct FoundCheckpoint {
  std::optional<LoadedCheckpoint> checkpoint;  // none: none is good
  std::vector<std::string> refused;            // at rank 0: a sentence for each newer one
  std::uint64_t run = 0;                       // for CheckpointWriter
};

// Every rank must call it; all get the same checkpoint, or all an error. Rank 0 looks for it.
Result<FoundCheckpoint> load_latest(const std::filesystem::path& folder,
                                    Communicator& communicator);

// A number that no other run has, the same at every rank; every rank must call it.
std::uint64_t draw_run(Communicator& communicator);

// For torch::load() of the same network; atomic.
Status export_weights(const torch::nn::Module& network, const std::filesystem::path& file);

}  // namespace sluice::train
