#include "cli/train/train_options.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/host.h"
#include "bootstrap/launch/launch.h"
#include "cli/train/run_folder.h"
#include "sluice/status.h"

namespace sluice::cli {
namespace {

// Data of a kind that one recipe is made for.
std::string recipe_for(const std::string& data) {
  if (data.empty() || data == "demo") return "demo";
  for (const char* const kind : {"mnist", "cifar10"}) {
    if (data.starts_with(base::format("{}:", kind))) return kind;
  }
  base::refuse(
      base::format("no recipe is known to be for {}: give --recipe ('sluice train --recipe list' "
                   "shows them)",
                   base::quote(data)));
}

double percent_of(const std::string& text) {
  double percent = 0;
  const char* const end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, percent);
  if (error != std::errc{} || at != end || !(percent > 0 && percent <= 100))
    base::refuse(base::format("--target must be a percentage above 0, up to 100, not {}",
                              base::quote(text)));
  return percent;
}

void refuse_contradictions(const TrainOptions& options) {
  if (options.device == "cuda") {
    base::refuse(
        "--device cuda is not there yet: this version trains on the CPU, so leave --device out");
  }
  if (options.device != "cpu")
    base::refuse(
        base::format("there is no device {}: choose from cpu, cuda", base::quote(options.device)));
  if (options.resume && options.run.empty()) {
    const std::filesystem::path newest = newest_run("");
    base::refuse(
        base::format("--resume needs the run's folder: give --run{}",
                     newest.empty() ? "" : base::format(" {}, the newest here", newest.string())));
  }
  if (options.resume && !options.init.empty())
    base::refuse("--init begins a training and --resume goes on with one: leave one of them out");
  if (!options.evaluate.empty() &&
      (options.resume || !options.init.empty() || !options.run.empty())) {
    base::refuse("--evaluate trains nothing: leave --run, --resume and --init out");
  }
  for (const std::string& set : options.set) {
    if (set.find('=') == std::string::npos || set.starts_with('='))
      base::refuse(base::format("--set takes key=value, not {}", base::quote(set)));
  }
}

}  // namespace

void add_train_options(CLI::App& command, TrainOptions& options) {
  command.add_option("--recipe", options.recipe,
                     "A recipe's name or file; 'list' shows the names (default: demo)");
  command.add_option("--data", options.data,
                     "demo, mnist:DIR, cifar10:DIR, images:DIR or pack:FILE\n"
                     "(default: demo, where the recipe is demo)");
  command.add_option("--ranks", options.ranks,
                     base::format("1 to {} on this machine (default: its cores, {} at most)",
                                  bootstrap::kMostLocalRanks, kMostDefaultRanks));
  command.add_option("--device", options.device, "cpu; cuda is not there yet")
      ->capture_default_str();
  command.add_option("--run", options.run,
                     "The run's folder (default: a new runs/RECIPE-DATE-TIME)");
  command.add_flag("--resume", options.resume, "Go on with the run in --run");
  command.add_option("--init", options.init, "Start from the weights in this file");
  command.add_option("--evaluate", options.evaluate,
                     "Train nothing: the accuracy of this checkpoint, or of a run's newest");
  command.add_option("--target", options.target,
                     "Stop at this accuracy in percent; exit 1 when it is not reached");
  command.add_option("--max-restarts", options.max_restarts,
                     "Start all ranks again from the last checkpoint after a crash,\n"
                     "so many times (default: 0)");
  command.add_option("--steps", options.steps, "Stop after so many steps in all");
  command.add_option("--set", options.set, "key=value: another value for one of the recipe's keys")
      ->allow_extra_args(false);
  command.add_flag("--dry-run", options.dry_run, "Print all that would run, and run nothing");
  command.add_flag("--json", options.json, "One JSON document");
  command.add_flag("--keep-nothing", options.keep_nothing)->group("");
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
      base::parse_whole(options.max_restarts, 0, kMostRestarts, "--max-restarts").value());
  if (!options.target.empty()) job.target = percent_of(options.target);
  if (!options.steps.empty())
    job.step_limit = base::parse_whole(options.steps, 1, kMostSteps, "--steps").value();

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
      base::format("recipe {} needs data: give --data images:DIR or pack:FILE (mnist:DIR and "
                   "cifar10:DIR for theirs, demo to try it)",
                   job.recipe.name));
}

int ranks_of(const TrainOptions& options, int most) {
  if (!options.ranks.empty())
    return static_cast<int>(base::parse_whole(options.ranks, 1, most, "--ranks").value());
  return std::min(kMostDefaultRanks, static_cast<int>(bootstrap::usable_cores().size()));
}

}  // namespace sluice::cli
