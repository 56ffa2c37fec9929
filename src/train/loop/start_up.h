// start_up.h - creates everything that one rank trains with, as quickly as possible.
//
// The communicator is created on a separate thread, so ranks connect while each opens the data and
// builds the network. All ranks draw the initial weights from the recipe's seed, so no weights are
// sent (Yamazaki et al. 2019).
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
#include "recipe/recipe.h"
#include "sluice/analysis/timeline.h"
#include "sluice/communicator.h"
#include "sluice/status.h"
#include "sluice/torch/gradient_options.h"
#include "sluice/torch/momentum_optimizer.h"
#include "train/checkpoint/checkpoint.h"
#include "train/loop/trainer.h"
#include "train/models/models.h"

namespace sluice::train {

// Members are declared in dependency order and destroyed in reverse.
struct TrainingSetup {
  // The timelines must outlive all gradients in flight, which write to them.
  std::unique_ptr<Timeline> waits;   // adds up waiting times, stores no events
  std::unique_ptr<Timeline> traced;  // the events of timeline.json
  Communicator communicator;
  data::Data data;
  recipe::EpochTable epoch_table;
  std::shared_ptr<Model> network;
  std::unique_ptr<MomentumOptimizer> optimizer;
  std::unique_ptr<libtorch::ModelReducer> parallel;
  recipe::Recipe recipe;                 // with the global batch of the resumed run
  std::optional<TrainingState> resumed;  // the state in the checkpoint; none: a new training
  std::uint64_t run = 0;                 // for CheckpointWriter
  StartUp start_up;                      // without the total
  std::vector<std::string> notes;        // sentences for the user
};

std::unique_ptr<MomentumOptimizer> make_optimizer(const recipe::Recipe& recipe,
                                                  std::vector<torch::Tensor> parameters);
GradientOptions gradient_options(const recipe::Recipe& recipe,
                                 const recipe::EpochTable& epoch_table);

double seconds_since(std::chrono::steady_clock::time_point begin);
// The time when this process started, which is before main(), to a hundredth of a second. If it
// cannot be read, returns the current time.
std::chrono::steady_clock::time_point process_start();
// The processor time that all threads of this process have used, in seconds.
double processor_s();

// Every rank must call it. Throws Error, as Communicator does.
Result<TrainingSetup> start_up(const CommunicatorMaker& make_communicator,
                               const DataOpener& open_data, const TrainerOptions& options);

}  // namespace sluice::train
