// checkpoint.h - saves a training and resumes it, on the same or another number of ranks.
//
//   writer.save(state, objects);                    // copies the state; a thread writes it
//   ...
//   auto found = load_latest(folder, communicator); // the newest valid one, at every rank
//   if (found.value().checkpoint) found.value().checkpoint->apply(objects);
//
// A training that resumes on the same number of ranks continues with the same bits. On another
// number of ranks, every rank gets the mean of the old ranks' residuals and running statistics; the
// mean in flight stays as it is. The caller must keep the global batch and the data.
//
// docs/checkpoints.md describes the files.
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

// State that the caller provides, the same at all ranks.
struct TrainingState {
  std::int64_t step = 0;  // number of steps done
  std::uint64_t seed = 0;
  std::map<std::string, std::string> settings;  // the resumed run must have the same
  std::map<std::string, std::string> notes;     // other values for the resumed run
  double accuracy = -1;  // with these weights, in percent; negative: not evaluated
  double best_accuracy = -1;
  std::int64_t best_step = 0;
};

// The objects that a step changes.
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
  int ranks() const { return common_.header().ranks; }  // number of ranks that wrote it

  // Restores the whole state. REQUIRES: `objects` have done no step.
  Status apply(const TrainingObjects& objects) const;
  // Restores only weights and running statistics.
  Status apply_weights(torch::nn::Module& network) const;

 private:
  TrainingState state_;
  CheckpointPart common_;
  CheckpointPart own_;
};

// Loads one checkpoint for the rank `own`. Without a rank, running statistics and residual are the
// mean over all ranks that wrote it. Only that mean needs the files of other ranks.
Result<LoadedCheckpoint> load_checkpoint(const std::filesystem::path& checkpoint,
                                         std::optional<Rank> own = std::nullopt);

struct FoundCheckpoint {
  std::optional<LoadedCheckpoint> checkpoint;  // the newest valid one, if any
  std::vector<std::string> refused;            // at rank 0: a sentence for each newer checkpoint
  std::uint64_t run = 0;                       // for CheckpointWriter
};

// Rank 0 searches. Every rank must call it: all get the same checkpoint, or all get an error.
Result<FoundCheckpoint> load_latest(const std::filesystem::path& folder,
                                    Communicator& communicator);

// Draws a random number for a run. Every rank must call it, and all get the same number.
std::uint64_t draw_run(Communicator& communicator);

// Writes weights that torch::load() reads for the same network. Replaces the file atomically.
Status export_weights(const torch::nn::Module& network, const std::filesystem::path& file);

}  // namespace sluice::train
