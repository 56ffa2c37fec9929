#include "train/trainer.h"

#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <new>
#include <utility>

#include "train/data/data.h"
#include "train/process_start.h"
#include "train/start_up.h"
#include "train/train_on.h"
#include "train/training_loop.h"

namespace sluice {
namespace {

// libtorch and the engine throw; here that ends.
template <class Body>
auto guarded(const Body& body) -> decltype(body()) {
  try {
    return body();
  } catch (const Error& error) {
    return Status{error.code(), error.what()};
  } catch (const c10::Error& error) {
    return Status{Code::InvalidArgument,
                  fmt::format("libtorch: {}", error.what_without_backtrace())};
  } catch (const std::bad_alloc&) {
    return Status{Code::NoMemory, "there is not enough memory for this network and batch"};
  }
}

}  // namespace

Result<TrainingSummary> train_on(const DataOpener& open_data,
                                 const CommunicatorMaker& make_communicator,
                                 const TrainerOptions& options, TrainingEvents* events,
                                 const std::atomic<int>& stop) {
  const TrainingTerms terms{.options = options,
                            .events = events,
                            .stop = stop,
                            .start = options.start.value_or(process_start())};
  const double before_s = seconds_since(terms.start);
  return guarded([&]() -> Result<TrainingSummary> {
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
