#include "cli/train/train_job.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/host.h"
#include "bootstrap/launch/launch.h"
#include "cli/train/run_folder.h"
#include "sluice/status.h"

namespace sluice::cli {
namespace {

// The built-in recipe for this kind of data.
std::string recipe_for(const std::string& data) {
  if (data.empty() || data == "demo") return "demo";
  for (const char* const kind : {"mnist", "cifar10"}) {
    if (data.starts_with(base::format("{}:", kind))) return kind;
  }
  base::refuse(
      base::format("no built-in recipe is made for {}: give --recipe ('sluice train --recipe list' "
                   "shows all recipes)",
                   base::quote(data)));
}

double percent_of(const std::string& text) {
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc{} || at != end || !(percent > 0 && percent <= 100))
    base::refuse(base::format("--target must be a percentage above 0 and at most 100, not {}",
                              base::quote(text)));
  return percent;
}

void refuse_contradictions(const TrainOptions& options) {
  if (options.device == "cuda") {
    base::refuse("--device cuda is not supported yet: leave out --device to train on the CPU");
  }
  if (options.device != "cpu")
    base::refuse(
        base::format("there is no device {}: choose from cpu, cuda", base::quote(options.device)));
  if (options.resume && options.run.empty()) {
    const std::filesystem::path newest = newest_run("");
    base::refuse(base::format(
        "--resume needs the run's folder: give --run{}",
        newest.empty() ? "" : base::format(" {} (the newest run here)", newest.string())));
  }
  if (options.resume && !options.init.empty())
    base::refuse("--init starts a new training and --resume continues one: leave out one of them");
  if (!options.evaluate.empty() &&
      (options.resume || !options.init.empty() || !options.run.empty())) {
    base::refuse("--evaluate does not train: leave out --run, --resume and --init");
  }
  for (const std::string& set : options.set) {
    if (set.find('=') == std::string::npos || set.starts_with('='))
      base::refuse(base::format("--set takes key=value, not {}", base::quote(set)));
  }
}

}  // namespace

void add_train_options(CommandLine& command, TrainOptions& options) {
  command.add_option("--recipe", options.recipe,
                     "Name or file of a recipe; 'list' prints all names\n"
                     "(default: the recipe made for --data, else demo)");
  command.add_option("--data", options.data,
                     "demo, mnist:DIR, cifar10:DIR, images:DIR or pack:FILE\n"
                     "(default: demo with the recipe demo, else required)");
  command.add_option("--ranks", options.ranks,
                     base::format("Number of ranks on this machine, 1 to {}\n"
                                  "(default: one per core, at most {})",
                                  bootstrap::kMostLocalRanks, kMostDefaultRanks));
  command.add_option("--device", options.device, "cpu (cuda is not supported yet)")
      ->capture_default_str();
  command.add_option("--run", options.run,
                     "Folder for the results (default: a new runs/RECIPE-DATE-TIME)");
  command.add_flag("--resume", options.resume,
                   "Continue the run in --run from its last checkpoint");
  command.add_option("--init", options.init, "Start from the weights in this file");
  command.add_option("--evaluate", options.evaluate,
                     "Do not train; print the accuracy of this checkpoint,\n"
                     "or of the newest checkpoint of this run folder");
  command.add_option("--target", options.target,
                     "Stop at this accuracy in percent; exit with 1 if it is not reached");
  command.add_option("--max-restarts", options.max_restarts,
                     "After a crash restart all ranks from the last checkpoint,\n"
                     "at most this many times (default: 0)");
  command.add_option("--steps", options.steps, "Stop after this many training steps in total");
  command.add_option("--set", options.set, "KEY=VALUE: override one key of the recipe; repeatable")
      ->one_value_each();
  command.add_flag("--dry-run", options.dry_run, "Print the plan of the training, do not train");
  command.add_flag("--json", options.json, "Print one JSON document");
  command.add_flag("--keep-nothing", options.keep_nothing)->hidden();
}

std::vector<std::string> arguments_of_rank(const TrainOptions& options) {
  std::vector<std::string> arguments;
  const auto give = [&](const char* name, const std::string& value) {
    if (!value.empty()) arguments.insert(arguments.end(), {name, value});
  };
  give("--recipe", options.recipe);
  give("--data", options.data);
  give("--run", options.run);
  give("--init", options.init);
  give("--evaluate", options.evaluate);
  give("--target", options.target);
  give("--steps", options.steps);
  for (const std::string& set : options.set) give("--set", set);
  if (options.resume) arguments.emplace_back("--resume");
  if (options.json) arguments.emplace_back("--json");
  if (options.keep_nothing) arguments.emplace_back("--keep-nothing");
  return arguments;
}

TrainJob job_of(const TrainOptions& options) {
  constexpr std::int64_t kMostSteps = 1'000'000'000'000;
  constexpr int kMostRestarts = 1'000'000;
  refuse_contradictions(options);
  TrainJob job;
  job.max_restarts = static_cast<int>(
      base::parse_integer(options.max_restarts, 0, kMostRestarts, "--max-restarts").value());
  if (!options.target.empty()) job.target = percent_of(options.target);
  if (!options.steps.empty())
    job.step_limit = base::parse_integer(options.steps, 1, kMostSteps, "--steps").value();

  if (!options.evaluate.empty()) {
    job.data = options.data.empty() ? data_of_checkpoint(options.evaluate) : options.data;
    return job;
  }
  const bool as_recorded = options.resume && options.recipe.empty();
  if (as_recorded) {
    RecordedRun recorded = recorded_run(options.run, options.set).value();
    job.recipe = std::move(recorded.recipe);
    job.data = options.data.empty() ? recorded.data : options.data;
    return job;
  }
  const std::string recipe = options.recipe.empty() ? recipe_for(options.data) : options.recipe;
  job.recipe = recipe::load_recipe(recipe, options.set).value();
  job.data = options.data.empty() && job.recipe.name == "demo" ? "demo" : options.data;
  return job;
}

void require_data(const TrainJob& job) {
  if (!job.data.empty()) return;
  base::refuse(
      base::format("recipe {} needs data: give --data images:DIR or pack:FILE (also mnist:DIR, "
                   "cifar10:DIR, or demo to try it)",
                   job.recipe.name));
}

int ranks_of(const TrainOptions& options, int most) {
  if (!options.ranks.empty())
    return static_cast<int>(base::parse_integer(options.ranks, 1, most, "--ranks").value());
  return std::min(kMostDefaultRanks, static_cast<int>(bootstrap::usable_cores().size()));
}

std::string train_program() {
#ifndef SLUICE_TORCH_VERSION
  base::refuse(
      "this sluice was built without libtorch and cannot train: install libtorch (apt install "
      "libtorch-dev, or tools/setup) and build again");
#else
  const std::filesystem::path path =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "sluice-train";
  if (access(path.c_str(), X_OK) != 0) {
    throw Error{Status{Code::InvalidInput,
                       base::format("the program {} is missing: build or install Sluice again",
                                    base::quote(path.string()))}};
  }
  return path.string();
#endif
}

void become_train_program(std::vector<std::string> arguments) {
  const std::string path = train_program();
  arguments.insert(arguments.begin(), path);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  execv(path.c_str(), pointers.data());
  throw Error{Status{Code::InvalidInput,
                     base::format("cannot run {}: {}", base::quote(path), std::strerror(errno))}};
}

RankThreads share_threads(int threads, bool decodes) {
  if (!decodes) return {.compute = std::max(1, threads), .loader = 0};
  const int loader = std::max(1, threads / 4);
  return {.compute = std::max(1, threads - loader), .loader = loader};
}

void take_share_of_cores(const bootstrap::Placement& placement,
                         const bootstrap::Environment& environment) {
  const std::vector<int> cores = bootstrap::usable_cores();
  // A launcher that binds its ranks gives each of them fewer cores than it has.
  const bool bound = bootstrap::usable_cores(getppid()) != cores;
  std::span<const int> share = cores;
  if (!bound) {
    share = bootstrap::share_of_cores(cores, placement.local_ranks, placement.local_rank);
    (void)bootstrap::pin_to(share);  // unpinned ranks are slower, but correct
  }
  if (!environment.has(bootstrap::variable::kThreads))
    setenv(bootstrap::variable::kThreads.name.data(), std::to_string(share.size()).c_str(), 0);
}

int threads_of_rank(const bootstrap::Environment& environment) {
  constexpr int kMostThreads = 4096;
  const auto text = environment.text(bootstrap::variable::kThreads);
  const auto number =
      text ? base::parse_integer(*text, 1, kMostThreads, bootstrap::variable::kThreads.name)
           : Result<std::int64_t>{1};
  return number.ok() ? static_cast<int>(number.value()) : 1;
}

}  // namespace sluice::cli
