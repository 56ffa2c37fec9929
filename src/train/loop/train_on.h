// train_on.h - train() on data of one's own making.
#pragma once

#include <atomic>

#include "train/loop/start_up.h"
#include "train/loop/trainer.h"

namespace sluice::train {

// As train(), with what `open_data` returns instead of TrainerOptions::data.
Result<TrainingSummary> train_on(const DataOpener& open_data,
                                 const CommunicatorMaker& make_communicator,
                                 const TrainerOptions& options, TrainingEvents* events,
                                 const std::atomic<int>& stop);

}  // namespace sluice::train
