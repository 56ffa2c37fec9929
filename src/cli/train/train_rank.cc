// train_rank.cc - sluice-train: one rank of `sluice train`, started by it or by a launcher.
//
// It takes the options of `sluice train` and reads its rank from the launcher's environment
// variables. Rank 0 shows the progress and prints the result; the other ranks are silent unless
// they fail.
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <exception>
#include <filesystem>
#include <new>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/environment.h"
#include "bootstrap/placement.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/train/run_folder.h"
#include "cli/train/train_job.h"
#include "cli/train/training_display.h"
#include "cli/train/training_summary.h"
#include "sluice/communicator.h"
#include "sluice/log.h"
#include "train/loop/trainer.h"

namespace sluice::cli {
namespace {

using Clock = std::chrono::steady_clock;

std::atomic<int> stop_signal{0};
static_assert(std::atomic<int>::is_always_lock_free, "a signal handler writes it");

// The first SIGINT, SIGTERM or SIGHUP stores its number in stop_signal; a second one ends the
// process.
void handle_stop_signals() {
  struct sigaction action {};
  action.sa_handler = [](int signal) { stop_signal.store(signal); };
  action.sa_flags = static_cast<int>(SA_RESTART | SA_RESETHAND);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

// Rank 0 makes a fresh run folder and broadcasts its path. Collective; throws Error on every rank.
std::filesystem::path agreed_run_folder(Communicator& communicator, const std::string& name) {
  constexpr std::size_t kLongestPath = 4096;
  std::array<char, kLongestPath> text{};  // '+' and the path, or '-' and an error
  if (communicator.rank() == 0) {
    const auto folder = fresh_run_folder("", name, std::time(nullptr));
    const std::string result = folder.ok() ? folder.value().string() : folder.status().message();
    text[0] = folder.ok() ? '+' : '-';
    std::strncpy(text.data() + 1, result.c_str(), text.size() - 2);
  }
  communicator.broadcast({text.data(), text.size(), DataType::U8}).wait();
  if (text[0] != '+') throw Error{Status{Code::InvalidInput, text.data() + 1}};
  return text.data() + 1;
}

// The start of the job, when a launcher has recorded it.
std::optional<Clock::time_point> start_of_job(const bootstrap::Environment& environment) {
  const auto text = environment.text(bootstrap::variable::kStarted);
  if (!text) return std::nullopt;
  const auto began = base::parse_integer(*text, 0, INT64_MAX, bootstrap::variable::kStarted.name);
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
        train::train(make, trainer, events(), stop_signal).value();
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
  // Bad input mostly fails on every rank. Rank 0 reports it; the others wait for their launcher to
  // stop them, and report the error only if that does not happen within 2 s.
  if (input && rank != 0) {
    for (int i = 0; i < 200 && stop_signal.load() == 0; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    if (stop_signal.load() != 0) return kExitUsage;
  }
  // Errors of the engine name their rank already.
  const std::string rank_text = rank == 0 || !input ? "" : base::format("rank {}: ", rank);
  base::print(stderr, "sluice{}: {}{}\n", input ? "" : " train", rank_text, error.what());
  return input ? kExitUsage : kExitMachine;
}

int run(const TrainOptions& options) {
  handle_stop_signals();  // before any slow work
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

}  // namespace
}  // namespace sluice::cli

int main(int argc, char** argv) {
  sluice::cli::CommandLine program{"One rank of a training. 'sluice train' starts these ranks.",
                                   "sluice-train"};
  sluice::cli::TrainOptions options;
  sluice::cli::add_train_options(program, options);
  try {
    return program.parse(argc, argv) ? sluice::cli::run(options) : sluice::cli::kExitDone;
  } catch (const sluice::cli::UsageError& error) {
    sluice::base::print(stderr, "sluice: {}\n", error.what());
    return sluice::cli::kExitUsage;
  } catch (const std::bad_alloc&) {
    sluice::base::print(stderr,
                        "sluice train: out of memory: use a smaller batch or fewer ranks\n");
  } catch (const std::exception& error) {
    sluice::base::print(stderr, "sluice train: {}\n", error.what());
  }
  return sluice::cli::kExitMachine;
}
