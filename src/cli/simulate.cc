// simulate.cc - `sluice simulate`: what a collective would take on a cluster that nobody has here.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/simulate_allreduce.h"
#include "plan/cluster.h"
#include "sluice/algorithms.h"

namespace sluice::cli {
namespace {

struct Options {
  std::string cluster;
  std::string ranks;
  std::string bytes;
  std::string algorithm;
  std::string segments;
  std::vector<std::string> what_if;
  bool json = false;
};

constexpr int kMostSimulatedRanks = 1 << 13;

[[noreturn]] void refuse(std::string sentence) {
  throw Error{Status{Code::InvalidArgument, std::move(sentence)}};
}

void run(const Options& options) {
  AllReduceQuestion question{.algorithm = options.algorithm, .json = options.json};
  question.world.cluster = find_cluster(options.cluster).value();
  if (const Status status = apply(question.world, options.what_if, false); !status.ok())
    throw Error{status};
  question.ranks = parse_list(options.ranks, 1, kMostSimulatedRanks, "--ranks").value();
  question.bytes = parse_bytes(options.bytes).value();
  if (question.bytes < 1) refuse("--allreduce needs a byte at least");
  if (!options.segments.empty()) question.segments = parse_segments(options.segments).front();
  if (!options.algorithm.empty() && options.algorithm != "all")
    (void)find_algorithm(options.algorithm).value();
  simulate_all_reduce(question);
}

}  // namespace

void add_simulate(CLI::App& app, int& exit_status) {
  auto options = std::make_shared<Options>();
  CLI::App* const command =
      app.add_subcommand("simulate", "Say what it would take on a cluster of any size");
  command->add_option("--cluster", options->cluster, "A built-in cluster, or a TOML file")
      ->required();
  command->add_option("--ranks", options->ranks, "Numbers of ranks: 8,32,128")->required();
  command->add_option("--allreduce", options->bytes, "A collective alone, of so many bytes: 51M")
      ->required();
  command->add_option("--algorithm", options->algorithm,
                      "This one, or all; without it what the engine would choose");
  command->add_option("--segments", options->segments, "Segments a tree");
  command->add_option("--what-if", options->what_if,
                      "Change something: between.gbit_per_s=400, oversubscription=1, lanes=4");
  command->add_flag("--json", options->json, "One JSON document");
  command->footer(
      "Examples:\n"
      "  sluice simulate --cluster abci --ranks 8,128,2048 --allreduce 51MB\n"
      "  sluice simulate --cluster mn-1 --ranks 1024 --allreduce 51MB --algorithm all\n"
      "  sluice simulate --cluster mn-1 --ranks 256 --allreduce 51MB --what-if oversubscription=1");
  command->callback([options, &exit_status] {
    run(*options);
    exit_status = kExitDone;
  });
}

}  // namespace sluice::cli
