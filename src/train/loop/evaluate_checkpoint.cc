#include <ATen/Parallel.h>

#include <chrono>
#include <future>

#include "base/format.h"
#include "data/data.h"
#include "train/checkpoint/initial_weights.h"
#include "train/loop/evaluation.h"
#include "train/loop/exceptions.h"
#include "train/loop/start_up.h"
#include "train/loop/trainer.h"
#include "train/report/process_start.h"

namespace sluice::train {
namespace {

Result<EvaluationReport> evaluate_stored(const CommunicatorMaker& make_communicator,
                                         const EvaluatorOptions& options, TrainingEvents* events) {
  const auto start = options.start ? *options.start : process_start();
  if (options.threads > 0) at::set_num_threads(options.threads);
  std::future<Communicator> joining = std::async(std::launch::async, make_communicator);
  Result<StoredModel> stored = stored_model(options.checkpoint);
  if (!stored.ok()) return stored.status();
  Result<data::Data> data = data::open_data(options.data);
  if (!data.ok()) return data.status();
  const std::int64_t classes = stored.value().network->parameters().back().size(0);
  if (classes != static_cast<std::int64_t>(data.value().classes.size())) {
    return Status{Code::InvalidArgument, base::format("{} tells {} classes apart, and {} has {}",
                                                      options.checkpoint.string(), classes,
                                                      options.data, data.value().classes.size())};
  }
  Communicator communicator = joining.get();
  const bool leads = communicator.rank() == 0;
  const recipe::Recipe& recipe = stored.value().recipe;
  const auto samples = static_cast<std::int64_t>(data.value().validation->size());
  const auto begin = std::chrono::steady_clock::now();
  Result<EvaluationCounts> counted =
      evaluate({.network = *stored.value().network,
                .data = data.value(),
                .recipe = recipe,
                .batch = options.batch > 0 ? options.batch : recipe.batch,
                .loader_threads = options.loader_threads,
                .tell =
                    [&](std::int64_t done) {
                      if (leads && events != nullptr)
                        events->evaluating(done * communicator.size(), samples);
                    }},
               communicator);
  if (!counted.ok()) return counted.status();
  EvaluationReport report = report_of(counted.value(), data.value());
  report.step = stored.value().step;
  report.epoch = stored.value().epoch;
  report.seconds = seconds_since(begin);
  report.elapsed_s = seconds_since(start);
  if (leads && events != nullptr) events->evaluated(report);
  return report;
}

}  // namespace

Result<EvaluationReport> evaluate_checkpoint(const CommunicatorMaker& make_communicator,
                                             const EvaluatorOptions& options,
                                             TrainingEvents* events) {
  return guarded<EvaluationReport>(
      [&] { return evaluate_stored(make_communicator, options, events); });
}

}  // namespace sluice::train
