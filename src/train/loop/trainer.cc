#include "train/loop/trainer.h"

#include <utility>

#include "data/data.h"
#include "train/loop/exceptions.h"
#include "train/loop/start_up.h"
#include "train/loop/train_on.h"
#include "train/loop/training_loop.h"
#include "train/report/process_start.h"

namespace sluice::train {

Result<TrainingSummary> train_on(const DataOpener& open_data,
                                 const CommunicatorMaker& make_communicator,
                                 const TrainerOptions& options, TrainingEvents* events,
                                 const std::atomic<int>& stop) {
  const LoopContext terms{.options = options,
                          .events = events,
                          .stop = stop,
                          .start = options.start ? *options.start : process_start()};
  const double before_s = seconds_since(terms.start);
  return guarded<TrainingSummary>([&]() -> Result<TrainingSummary> {
    Result<TrainingSetup> workshop = start_up(make_communicator, open_data, options);
    if (!workshop.ok()) return workshop.status();
    workshop.value().start_up.before_s = before_s;
    return TrainingLoop{terms, std::move(workshop).value()}.run();
  });
}

Result<TrainingSummary> train(const CommunicatorMaker& make_communicator,
                              const TrainerOptions& options, TrainingEvents* events,
                              const std::atomic<int>& stop) {
  return train_on([&] { return data::open_data(options.data); }, make_communicator, options, events,
                  stop);
}

}  // namespace sluice::train
