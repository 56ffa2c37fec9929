// simulate.cc - `sluice simulate`: what a collective, or a training, would take on a cluster that
// nobody has here.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/simulate_allreduce.h"
#include "cli/simulate_training.h"
#include "plan/cluster.h"
#include "sluice/algorithms.h"

namespace sluice::cli {
namespace {

struct Options {
  std::string cluster;
  std::string ranks;
  std::string bytes;
  std::string recipe;
  std::string framework;
  std::string algorithm;
  std::string segments;
  std::vector<std::string> what_if;
  bool json = false;
};

constexpr int kMostSimulatedRanks = 1 << 13;

[[noreturn]] void refuse(std::string sentence) {
  throw Error{Status{Code::InvalidArgument, std::move(sentence)}};
}

void run_all_reduce(const Options& options, WhatIf world, const std::vector<int>& ranks) {
  AllReduceQuestion question{.world = std::move(world),
                             .ranks = ranks,
                             .bytes = parse_bytes(options.bytes).value(),
                             .algorithm = options.algorithm,
                             .json = options.json};
  if (question.bytes < 1) refuse("--allreduce needs a byte at least");
  if (!options.segments.empty()) question.segments = parse_segments(options.segments).front();
  if (!options.algorithm.empty() && options.algorithm != "all")
    (void)find_algorithm(options.algorithm).value();
  simulate_all_reduce(question);
}

void run_training(const Options& options, WhatIf world, const std::vector<int>& ranks) {
  std::vector<std::string> settings = world.recipe;
  if (!options.algorithm.empty()) settings.push_back("algorithm=" + options.algorithm);
  TrainingQuestion question{.world = std::move(world),
                            .recipe = load_recipe(options.recipe, settings).value(),
                            .framework = options.framework};
  simulate_trainings(std::move(question), ranks, options.json);
}

void run(const Options& options) {
  if (options.bytes.empty() == options.recipe.empty())
    refuse("give --allreduce BYTES or --recipe NAME, one of them");
  WhatIf world{.cluster = find_cluster(options.cluster).value()};
  const bool training = !options.recipe.empty();
  if (const Status status = apply(world, options.what_if, training); !status.ok())
    throw Error{status};
  const std::vector<int> ranks =
      parse_list(options.ranks, 1, kMostSimulatedRanks, "--ranks").value();
  if (training) {
    run_training(options, std::move(world), ranks);
  } else {
    run_all_reduce(options, std::move(world), ranks);
  }
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("simulate", "Say what it would take on a cluster of any size");
  command->add_option("--cluster", options->cluster, "A built-in cluster, or a TOML file")
      ->required();
  command->add_option("--ranks", options->ranks, "Numbers of ranks: 8,32,128")->required();
  command->add_option("--allreduce", options->bytes, "A collective alone, of so many bytes: 51M");
  command->add_option("--recipe", options->recipe,
                      "A whole training: a built-in recipe, or a file");
  command->add_option("--framework", options->framework,
                      "Whose speed, where the cluster's file has several");
  command->add_option("--algorithm", options->algorithm,
                      "This one, or all; without it what the engine would choose");
  command->add_option("--segments", options->segments, "Segments a tree");
  command->add_option(
      "--what-if", options->what_if,
      "Change something: between.gbit_per_s=400, oversubscription=1, lanes=4, or with "
      "a recipe its keys: theta=1M");
  command->add_flag("--json", options->json, "One JSON document");
  command->footer(
      "Examples:\n"
      "  sluice simulate --cluster abci --ranks 8,128,2048 --allreduce 51MB\n"
      "  sluice simulate --cluster abci --ranks 8,128,2048 --recipe fujitsu-74s --framework mxnet\n"
      "  sluice simulate --cluster mn-1 --ranks 1024 --allreduce 51MB --algorithm all\n"
      "  sluice simulate --cluster mn-1 --ranks 256 --allreduce 51MB --what-if oversubscription=1");
  command->callback([options, &exit_status] {
    run(*options);
    exit_status = kExitDone;
  });
}

}  // namespace sluice::cli
