// simulate.cc - `sluice simulate`: the options and their checks.
#include "cli/simulate/simulate.h"

#include "base/format.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cluster/cluster.h"
#include "engine/select/constants.h"

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
  std::string scaling;
  std::int64_t samples = simulate::kImageNetSamples;
  std::string plot;
  std::string trace;
  std::vector<std::string> what_if;
  bool json = false;
};

constexpr const char* kThisMachine = "this-machine";

void run_all_reduce(const Options& options, simulate::ClusterScenario scenario,
                    const std::vector<int>& ranks) {
  AllReduceSweep sweep{.scenario = std::move(scenario),
                       .ranks = ranks,
                       .options = {.bytes = base::parse_bytes(options.bytes).value(),
                                   .algorithm = options.algorithm},
                       .json = options.json};
  if (sweep.options.bytes < 1) base::refuse("--allreduce must be at least one byte");
  if (!options.segments.empty()) sweep.options.segments = parse_segments(options.segments).front();
  simulate_all_reduces(sweep);
}

void run_training(const Options& options, simulate::ClusterScenario scenario,
                  const std::vector<int>& ranks) {
  std::vector<std::string> settings = scenario.recipe;
  if (!options.algorithm.empty()) settings.push_back("algorithm=" + options.algorithm);
  recipe::Recipe recipe = recipe::load_recipe(options.recipe, settings).value();
  if (options.scaling == "weak") recipe.global_batch = 0;
  const bool strong = options.scaling == "strong" || recipe.global_batch > 0;
  simulate_trainings({.input = {.scenario = std::move(scenario),
                                .recipe = std::move(recipe),
                                .framework = options.framework,
                                .samples = options.samples},
                      .ranks = ranks,
                      .strong = strong,
                      .plot = options.plot,
                      .trace = options.trace,
                      .json = options.json});
}

void check(const Options& options) {
  if (options.bytes.empty() == options.recipe.empty())
    base::refuse("give either --allreduce BYTES or --recipe NAME");
  const auto only_with = [&](const std::string& value, const std::string& needed,
                             std::string_view option, std::string_view other) {
    if (!value.empty() && needed.empty()) base::refuse(base::format("{} needs {}", option, other));
  };
  only_with(options.framework, options.recipe, "--framework", "--recipe");
  only_with(options.scaling, options.recipe, "--scaling", "--recipe");
  only_with(options.plot, options.recipe, "--plot", "--recipe");
  only_with(options.trace, options.recipe, "--trace", "--recipe");
  only_with(options.segments, options.bytes, "--segments", "--allreduce");
  if (!options.scaling.empty() && options.scaling != "weak" && options.scaling != "strong")
    base::refuse(
        base::format("--scaling must be weak or strong, not {}", base::quote(options.scaling)));
}

// Uses the engine's measured links for this machine, if there are any.
cluster::Cluster cluster_of(const std::string& name, int most_ranks) {
  cluster::Cluster cluster = cluster::find_cluster(name).value();
  if (name != kThisMachine) return cluster;
  const auto constants = engine::kept_constants(bootstrap::Environment::of_process(), most_ranks);
  if (constants) {
    cluster.constants = *constants;
  } else {
    base::print(stderr,
                "this machine has not been measured for {} ranks: the links of "
                "clusters/this-machine.toml are used ('sluice bench allreduce --ranks {}' measures "
                "the machine)\n",
                most_ranks, most_ranks);
  }
  return cluster;
}

void run(const Options& options) {
  check(options);
  const std::vector<int> ranks =
      base::parse_list(options.ranks, 1, simulate::kMostRanks, "--ranks").value();
  simulate::ClusterScenario scenario{.cluster = cluster_of(options.cluster, ranks.back())};
  const bool training = !options.recipe.empty();
  if (const Status status = simulate::apply(scenario, options.what_if, training); !status.ok())
    throw Error{status};
  if (training) {
    run_training(options, std::move(scenario), ranks);
  } else {
    run_all_reduce(options, std::move(scenario), ranks);
  }
}

}  // namespace

void add_simulate(CommandLine& program, int& exit_status) {
  auto options = std::make_shared<Options>();
  CommandLine* const command = program.add_subcommand(
      "simulate", "Simulate a collective or a training on a cluster of any size");
  command->add_option("--cluster", options->cluster, "A built-in cluster, or a TOML file")
      ->required();
  command->add_option("--ranks", options->ranks, "Numbers of ranks: 8,32,128")->required();
  command->add_option("--allreduce", options->bytes,
                      "Simulate an all_reduce of this many bytes: 51M");
  command->add_option("--recipe", options->recipe,
                      "Simulate a training: a built-in recipe, or a TOML file");
  command->add_option("--framework", options->framework,
                      "The framework, if the cluster's file has speeds of several frameworks");
  command->add_option("--algorithm", options->algorithm,
                      "An algorithm, file:PATH, or all (default: the engine's choice)");
  command->add_option("--segments", options->segments, "Number of segments of a tree");
  command->add_option("--scaling", options->scaling,
                      "weak (the default): every rank keeps the recipe's batch; strong: all ranks "
                      "share the recipe's global_batch, or else the batch of the fewest ranks");
  command->add_option(
      "--what-if", options->what_if,
      base::format("Changes, key=value: {}; with --recipe also any key of a recipe: theta=1M",
                   base::join(simulate::what_if_keys(), ", ")));
  command->add_option("--samples", options->samples, "Number of images in an epoch")
      ->positive()
      ->capture_default_str();
  command->add_option("--plot", options->plot, "Write the scaling curve to this file, as SVG");
  command->add_option("--trace", options->trace,
                      "Write a step on the most ranks to this file, as a Chrome trace");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->footer(
      "All results are simulated. docs/simulation.md describes the model and its limits.\n\n"
      "Examples:\n"
      "  sluice simulate --cluster abci --ranks 8,128,2048 --allreduce 51MB\n"
      "  sluice simulate --cluster mn-1 --ranks 1024 --allreduce 51MB --algorithm all\n"
      "  sluice simulate --cluster abci --framework mxnet --recipe fujitsu-74s "
      "--ranks 8,32,128,512,2048 --plot abci.svg\n"
      "  sluice simulate --cluster mn-1-10gbe --recipe chainermn-cloud --ranks 32 "
      "--what-if double_buffering=false wire=f32\n"
      "  sluice simulate --cluster sensetime-v --recipe gradientflow-alexnet --ranks 512 "
      "--what-if sparsity=0 --trace dense.json\n"
      "  sluice simulate --cluster mn-1 --recipe pfn-15min --ranks 64,256 --scaling strong "
      "--what-if global_batch=8192\n"
      "  sluice simulate --cluster abci --ranks 64 --allreduce 51MB "
      "--what-if slow_node=3 slow_part=0.5 background=0.2 jitter_us=500 jitter_seed=7");
  command->callback([options, &exit_status] {
    run(*options);
    exit_status = kExitDone;
  });
}

}  // namespace sluice::cli
