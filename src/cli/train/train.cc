// train.cc - `sluice train`: loads the recipe and starts the ranks.
//
// A process that mpirun, srun, torchrun or `sluice launch` has started becomes one rank. Any other
// process starts the ranks of this machine, waits for them and, if asked to, restarts them after a
// crash.
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "bootstrap/environment.h"
#include "bootstrap/launch/launch.h"
#include "bootstrap/placement.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/terminal.h"
#include "cli/train/run_folder.h"
#include "cli/train/train_dry_run.h"
#include "cli/train/train_job.h"

namespace sluice::cli {
namespace {

void print_message(const std::string& sentence) {
  base::print(stderr, "{}sluice train: {}\n", line_start(), sentence);
}

int list_recipes(bool json) {
  const std::vector<recipe::RecipeSummary> recipes = recipe::known_recipes();
  if (json) {
    auto document = nlohmann::ordered_json::array();
    for (const recipe::RecipeSummary& recipe : recipes)
      document.push_back({{"name", recipe.name}, {"about", recipe.about}});
    base::print("{}\n", document.dump(2));
    return kExitDone;
  }
  std::size_t width = 0;
  for (const recipe::RecipeSummary& recipe : recipes) width = std::max(width, recipe.name.size());
  for (const recipe::RecipeSummary& recipe : recipes)
    base::print("{:<{}}  {}\n", recipe.name, width, recipe.about);
  return kExitDone;
}

int show_dry_run(const TrainOptions& options, int ranks) {
  const DryRun run = dry_run(job_of(options), ranks);
  if (options.json) {
    base::print("{}\n", dry_run_json(run).dump(2));
  } else {
    base::print("{}", dry_run_text(run));
  }
  return kExitDone;
}

[[noreturn]] void become_rank(const TrainOptions& options, const bootstrap::Placement& placement,
                              const bootstrap::Environment& environment) {
  if (!options.ranks.empty() || options.max_restarts != "0") {
    base::refuse(
        base::format("{} has started this process as one of {} ranks: give --ranks and "
                     "--max-restarts to the launcher instead",
                     placement.launcher, placement.ranks));
  }
  if (placement.launcher != "sluice launch") take_share_of_cores(placement, environment);
  become_train_program(arguments_of_rank(options));
}

int report(const TrainOptions& options, const bootstrap::LaunchOutcome& outcome) {
  const std::string resume_hint =
      options.run.empty()
          ? ""
          : base::format("; continue with: sluice train --resume --run {}", options.run);
  if (outcome.signal != 0) return 128 + outcome.signal;
  if (outcome.output_lost)
    print_message(base::format(
        "cannot write to standard output or standard error; stopped all ranks{}", resume_hint));
  if (!outcome.first_failure) return outcome.succeeded() ? kExitDone : kExitMachine;
  const bootstrap::LaunchOutcome::Failure& failure = *outcome.first_failure;
  if (failure.status == kExitNo || failure.status == kExitUsage || failure.status > 128)
    return failure.status;  // the rank has reported the reason
  const std::string restarts =
      outcome.restarts == 0 ? "" : base::format(" after {} restarts", outcome.restarts);
  print_message(base::format("{}{}{}", describe(failure), restarts, resume_hint));
  return kExitMachine;
}

int start_ranks(TrainOptions options) {
  const TrainJob job = job_of(options);
  const int ranks = ranks_of(options, bootstrap::kMostLocalRanks);
  const std::string program = train_program();
  require_data(job);
  const bool keeps = options.evaluate.empty() && !options.keep_nothing;
  const bool fresh = keeps && options.run.empty();
  if (fresh) {
    options.run = fresh_run_folder("", job.recipe.name, std::time(nullptr)).value().string();
  } else if (keeps) {
    const Status status = check_run_folder(options.run, options.resume);
    if (!status.ok()) throw Error{status};
  }
  bootstrap::LaunchOptions launched{
      .ranks = ranks,
      .program = arguments_of_rank(options),
      .prefix = false,
      .first_rank_owns_terminal = is_terminal(STDERR_FILENO),
      .grace = std::chrono::milliseconds{5000},
      .max_restarts = job.max_restarts,
      .final_statuses = {kExitNo, kExitUsage, 128 + SIGINT, 128 + SIGTERM, 128 + SIGHUP},
      .report = print_message};
  launched.program.insert(launched.program.begin(), program);
  const auto outcome = bootstrap::launch(launched);
  std::error_code ignored;
  if (fresh) std::filesystem::remove(options.run, ignored);  // only an empty folder
  if (!outcome.ok()) {
    print_message(outcome.status().message());
    return kExitMachine;
  }
  return report(options, outcome.value());
}

int run(const TrainOptions& options) {
  if (options.recipe == "list") return list_recipes(options.json);
  const bootstrap::Environment environment = bootstrap::Environment::of_process();
  const bootstrap::Placement placement = bootstrap::placement_of(environment).value();
  const bool is_rank = placement.launcher != "none";
  if (options.dry_run) {
    if (is_rank && placement.rank != 0) return kExitDone;
    return show_dry_run(options, is_rank ? placement.ranks : ranks_of(options, kMostRanks));
  }
  if (is_rank) become_rank(options, placement, environment);
  return start_ranks(options);
}

}  // namespace

void add_train(CommandLine& program, int& exit_status) {
  auto options = std::make_shared<TrainOptions>();
  CommandLine* const command =
      program.add_subcommand("train", "Train a network on this machine's cores or on a cluster");
  add_train_options(*command, *options);
  command->footer(
      "'sluice train' starts the ranks of this machine. Under sluice launch, mpirun, srun or\n"
      "torchrun each process becomes one rank of the launcher's job.\n"
      "Ctrl-C writes a checkpoint and stops the training; a second Ctrl-C kills it.\n"
      "The run folder holds run.json, metrics.jsonl, timeline.json and checkpoints/.\n"
      "Exit status: 0 done, 1 target not reached or loss not finite, 2 wrong usage or input,\n"
      "3 a rank or the machine failed, 128 + N stopped by signal N.\n"
      "Examples:\n"
      "  sluice train                                           the demo; nothing to download\n"
      "  sluice train --recipe list                             all built-in recipes\n"
      "  sluice train --data cifar10:DIR --set epochs=20 --target 90\n"
      "  sluice train --recipe fujitsu-74s --ranks 2048 --dry-run\n"
      "  sluice train --run runs/mine --max-restarts 3\n"
      "  sluice train --resume --run runs/mine --set epochs=30  train on to 30 epochs\n"
      "  sluice train --evaluate runs/mine\n"
      "  mpirun -n 8 sluice train --recipe facebook-1h --data images:/data/imagenet \\\n"
      "    --run /shared/run");
  command->callback([options, &exit_status] { exit_status = run(*options); });
}

}  // namespace sluice::cli
