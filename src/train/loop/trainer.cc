#include "train/loop/trainer.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <exception>
#include <future>
#include <new>
#include <utility>

#include "base/format.h"
#include "data/data.h"
#include "train/checkpoint/resumption.h"
#include "train/loop/evaluation.h"
#include "train/loop/start_up.h"
#include "train/loop/training_loop.h"

namespace sluice::train {
namespace {

// Describes the exception that is being handled, of the engine or of libtorch.
Status exception_status() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.code(), error.what()};
  } catch (const c10::Error& error) {
    return {Code::InvalidArgument, base::format("libtorch: {}", error.what_without_backtrace())};
  } catch (const std::bad_alloc&) {
    return {Code::NoMemory, "there is not enough memory for this network and batch"};
  } catch (const std::exception& error) {
    return {Code::InvalidArgument, error.what()};
  }
}

// Returns the result of `body`; if it throws, returns the exception as a status.
template <class T>
Result<T> guarded(const std::function<Result<T>()>& body) {
  try {
    return body();
  } catch (...) {
    return exception_status();
  }
}

Result<EvaluationReport> evaluate_stored(const CommunicatorMaker& make_communicator,
                                         const EvaluatorOptions& options, TrainingEvents* events) {
  const auto start = options.start ? *options.start : process_start();
  if (options.threads > 0) at::set_num_threads(options.threads);
  std::future<Communicator> connecting = std::async(std::launch::async, make_communicator);
  Result<StoredModel> stored = stored_model(options.checkpoint);
  if (!stored.ok()) return stored.status();
  Result<data::Data> data = data::open_data(options.data);
  if (!data.ok()) return data.status();
  const std::int64_t classes = stored.value().network->parameters().back().size(0);
  if (classes != static_cast<std::int64_t>(data.value().classes.size())) {
    return Status{
        Code::InvalidArgument,
        base::format("{} was trained for {} classes, and {} has {}", options.checkpoint.string(),
                     classes, options.data, data.value().classes.size())};
  }
  Communicator communicator = connecting.get();
  const bool is_rank_zero = communicator.rank() == 0;
  const recipe::Recipe& recipe = stored.value().recipe;
  const auto samples = static_cast<std::int64_t>(data.value().validation->size());
  Result<EvaluationReport> evaluated =
      evaluate({.network = *stored.value().network,
                .data = data.value(),
                .recipe = recipe,
                .batch = options.batch > 0 ? options.batch : recipe.batch,
                .loader_threads = options.loader_threads,
                .report =
                    [&](std::int64_t done) {
                      if (is_rank_zero && events != nullptr)
                        events->evaluating(done * communicator.size(), samples);
                    }},
               communicator);
  if (!evaluated.ok()) return evaluated.status();
  EvaluationReport& report = evaluated.value();
  report.step = stored.value().step;
  report.epoch = stored.value().epoch;
  report.elapsed_s = seconds_since(start);
  if (is_rank_zero && events != nullptr) events->evaluated(report);
  return report;
}

}  // namespace

Result<TrainingSummary> train_on(const DataOpener& open_data,
                                 const CommunicatorMaker& make_communicator,
                                 const TrainerOptions& options, TrainingEvents* events,
                                 const std::atomic<int>& stop) {
  const LoopContext context{.options = options,
                            .events = events,
                            .stop = stop,
                            .start = options.start ? *options.start : process_start()};
  const double before_s = seconds_since(context.start);
  return guarded<TrainingSummary>([&]() -> Result<TrainingSummary> {
    Result<TrainingSetup> setup = start_up(make_communicator, open_data, options);
    if (!setup.ok()) return setup.status();
    setup.value().start_up.before_s = before_s;
    return TrainingLoop{context, std::move(setup).value()}.run();
  });
}

Result<TrainingSummary> train(const CommunicatorMaker& make_communicator,
                              const TrainerOptions& options, TrainingEvents* events,
                              const std::atomic<int>& stop) {
  return train_on([&] { return data::open_data(options.data); }, make_communicator, options, events,
                  stop);
}

Result<EvaluationReport> evaluate_checkpoint(const CommunicatorMaker& make_communicator,
                                             const EvaluatorOptions& options,
                                             TrainingEvents* events) {
  return guarded<EvaluationReport>(
      [&] { return evaluate_stored(make_communicator, options, events); });
}

}  // namespace sluice::train
