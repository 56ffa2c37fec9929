#include "train/trainer.h"

#include <utility>

#include "train/data/data.h"
#include "train/process_start.h"
#include "train/start_up.h"
#include "train/thrown.h"
#include "train/train_on.h"
#include "train/training_loop.h"

namespace sluice {

Result<TrainingSummary> train_on(const DataOpener& open_data,
                                 const CommunicatorMaker& make_communicator,
                                 const TrainerOptions& options, TrainingEvents* events,
                                 const std::atomic<int>& stop) {
  const TrainingTerms terms{.options = options,
                            .events = events,
                            .stop = stop,
                            .start = options.start ? *options.start : process_start()};
  const double before_s = seconds_since(terms.start);
  return guarded<TrainingSummary>([&]() -> Result<TrainingSummary> {
    Result<Workshop> workshop = start_up(make_communicator, open_data, options);
    if (!workshop.ok()) return workshop.status();
    workshop.value().start_up.before_s = before_s;
    return TrainingLoop{terms, std::move(workshop).value()}.run();
  });
}

Result<TrainingSummary> train(const CommunicatorMaker& make_communicator,
                              const TrainerOptions& options, TrainingEvents* events,
                              const std::atomic<int>& stop) {
  return train_on([&] { return open_data(options.data); }, make_communicator, options, events,
                  stop);
}

}  // namespace sluice
