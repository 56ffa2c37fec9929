// start_up.h - all that one rank trains with, made as quickly as can be.
//
// The communicator is made on a thread of its own: ranks find each other while each opens the data
// and makes the network. All start with the weights of the recipe's seed, so none are sent
// (Yamazaki et al. 2019).
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/data.h"
#include "libtorch/model_reducer.h"
#include "recipe/epoch_table.h"
#include "sluice/analysis/timeline.h"
#include "sluice/communicator.h"
#include "sluice/status.h"
#include "sluice/torch/momentum_optimizer.h"
#include "train/checkpoint/checkpoint.h"
#include "train/loop/trainer.h"
#include "train/models/models.h"

namespace sluice::train {

using DataOpener = std::function<Result<data::Data>()>;

// In the order in which parts need those before them; they go in the other.
struct TrainingSetup {
  // Gradients on their way write to these until the last of them is gone.
  std::unique_ptr<Timeline> waits;   // keeps no event
  std::unique_ptr<Timeline> traced;  // of the steps of timeline.json
  Communicator communicator;
  data::Data data;
  recipe::EpochTable plan;
  std::shared_ptr<Model> network;
  std::unique_ptr<MomentumOptimizer> optimizer;
  std::unique_ptr<libtorch::ModelReducer> parallel;
  recipe::Recipe recipe;                 // as it is trained: a resumed run keeps its global batch
  std::optional<TrainingState> resumed;  // what it goes on from
  std::uint64_t run = 0;                 // for CheckpointWriter
  StartUp start_up;                      // all but the total
  std::vector<std::string> notes;        // sentences for the user
};

// Since `begin`, in seconds.
double seconds_since(std::chrono::steady_clock::time_point begin);

// Every rank must call it. Throws Error, as Communicator does.
Result<TrainingSetup> start_up(const CommunicatorMaker& make_communicator,
                               const DataOpener& open_data, const TrainerOptions& options);

}  // namespace sluice::train
