#include "cli/train/train_rank.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/environment.h"
#include "bootstrap/placement.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/train/agreed_folder.h"
#include "cli/train/run_folder.h"
#include "cli/train/stop_signals.h"
#include "cli/train/train_program.h"
#include "cli/train/training_display.h"
#include "cli/train/training_summary.h"
#include "sluice/log.h"
#include "train/loop/trainer.h"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

// When the job began, where a launcher has told it.
std::optional<Clock::time_point> start_of_job(const bootstrap::Environment& environment) {
  const auto text = environment.text(bootstrap::variable::kStarted);
  if (!text) return std::nullopt;
  const auto began = base::parse_whole(*text, 0, INT64_MAX, bootstrap::variable::kStarted.name);
  if (!began.ok()) return std::nullopt;
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto ago = now - std::chrono::nanoseconds{began.value()};
  return Clock::now() - std::chrono::duration_cast<Clock::duration>(ago);
}

bool was_restarted(const bootstrap::Environment& environment) {
  return environment.text(bootstrap::variable::kRestarts)
             .value_or(environment.text(bootstrap::variable::kTorchRestarts).value_or("0")) != "0";
}

class TrainRank {
 public:
  explicit TrainRank(const TrainOptions& options)
      : options_{options},
        environment_{bootstrap::Environment::of_process()},
        placement_{bootstrap::placement_of(environment_).value()},
        job_{job_of(options)},
        display_{standard_error_display()} {}

  int run() {
    require_data(job_);
    return options_.evaluate.empty() ? train_it() : evaluate_it();
  }

 private:
  bool first() const { return placement_.rank == 0; }
  train::TrainingEvents* events() { return first() ? &display_ : nullptr; }

  RankThreads threads() const {
    const bool decodes = job_.data.starts_with("images:") || job_.data.starts_with("pack:");
    return share_threads(threads_of_rank(environment_), decodes);
  }

  int train_it() {
    train::TrainerOptions trainer{.recipe = job_.recipe,
                                  .data = job_.data,
                                  .run_folder = options_.run,
                                  .resume = options_.resume || was_restarted(environment_),
                                  .target = job_.target,
                                  .step_limit = job_.step_limit,
                                  .threads = threads().compute,
                                  .loader_threads = threads().loader,
                                  .start = start_of_job(environment_)};
    if (!options_.init.empty()) trainer.init = options_.init;
    train::CommunicatorMaker make = [] { return Communicator::from_env(); };
    std::optional<Communicator> made;
    if (options_.run.empty() && !options_.keep_nothing) {
      made = Communicator::from_env();
      trainer.run_folder = agreed_run_folder(*made, job_.recipe.name);
      make = [&made] { return *made; };
    } else if (first() && !options_.keep_nothing && !was_restarted(environment_)) {
      const Status status = check_run_folder(options_.run, options_.resume);
      if (!status.ok()) throw Error{status};
    }
    const train::TrainingSummary summary =
        train::train(make, trainer, events(), stop_signals()).value();
    return first() ? report(summary, trainer.run_folder) : kExitDone;
  }

  int report(const train::TrainingSummary& summary, const std::filesystem::path& folder) {
    display_.clear();
    const SummaryContext context{.recipe = job_.recipe.name,
                                 .model = job_.recipe.model,
                                 .run_folder = folder,
                                 .colour = has_colours(STDOUT_FILENO)};
    if (options_.json) {
      base::print("{}\n",
                  summary_json(summary, context)
                      .dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
    } else {
      base::print("{}", summary_text(summary, context));
    }
    std::fflush(stdout);
    if (summary.end == train::TrainingEnd::Signal) return 128 + summary.signal;
    if (summary.end == train::TrainingEnd::NotFinite) {
      base::print(stderr, "sluice train: {}\n", summary.why);
      return kExitNo;
    }
    return summary.target > 0 && !summary.target_met ? kExitNo : kExitDone;
  }

  int evaluate_it() {
    const train::EvaluatorOptions evaluator{.checkpoint = options_.evaluate,
                                            .data = job_.data,
                                            .threads = threads().compute,
                                            .loader_threads = threads().loader,
                                            .start = start_of_job(environment_)};
    const train::EvaluationReport evaluation =
        train::evaluate_checkpoint([] { return Communicator::from_env(); }, evaluator, events())
            .value();
    if (!first()) return kExitDone;
    display_.clear();
    base::print("{}", options_.json ? evaluation_json(evaluation).dump(2) + "\n"
                                    : evaluation_text(evaluation));
    return job_.target > 0 && evaluation.accuracy < job_.target ? kExitNo : kExitDone;
  }

  const TrainOptions& options_;
  bootstrap::Environment environment_;
  bootstrap::Placement placement_;
  TrainJob job_;
  TrainingDisplay display_;
};

int fail(const Error& error, Rank rank) {
  const bool input = error.code() == Code::InvalidArgument || error.code() == Code::InvalidInput;
  // What is wrong with the input is mostly wrong for all ranks, and rank 0 says it: the others give
  // it the time to, and then their launcher stops them.
  if (input && rank != 0) {
    for (int i = 0; i < 200 && stop_signals().load() == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    if (stop_signals().load() != 0) return kExitUsage;
  }
  // What the engine says names its rank already.
  const std::string who = rank == 0 || !input ? "" : base::format("rank {}: ", rank);
  base::print(stderr, "sluice{}: {}{}\n", input ? "" : " train", who, error.what());
  return input ? kExitUsage : kExitMachine;
}

}  // namespace

int run_train_rank(const TrainOptions& options) {
  (void)stop_signals();  // before anything that takes long
  const auto placement = bootstrap::placement_of(bootstrap::Environment::of_process());
  const Rank rank = placement.ok() ? placement.value().rank : 0;
  set_log([](LogLevel, const std::string& sentence) {
    base::print(stderr, "{}{}\n", line_start(), sentence);
  });
  try {
    return TrainRank{options}.run();
  } catch (const Error& error) {
    return fail(error, rank);
  }
}

}  // namespace sluice::cli
