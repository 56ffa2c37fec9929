// explain.cc - `sluice explain`: the chosen algorithm, the predicted times of the others, and the
// sizes at which the choice changes.

#include <algorithm>
#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/schedules/draw.h"
#include "cluster/cluster.h"
#include "engine/select/choices.h"
#include "engine/select/constants.h"
#include "sluice/analysis/select.h"
#include "sluice/schedule.h"
#include "sluice/torch/gradient_options.h"

namespace sluice::cli {
namespace {

struct Options {
  std::string ranks;
  std::string bytes;
  std::string algorithm;
  std::string collective = "all_reduce";
  std::string grid;
  std::string cluster = "generic";
  std::string segments;
  double sparsity = 0.85;
  int root = 0;
  bool schedule = false;
  bool draw = false;
  bool json = false;
};

constexpr const char* kThisMachine = "this-machine";
constexpr int kMostExplainedRanks = 1 << 13;  // `direct` has ranks^2 messages
constexpr std::int64_t kLeastCrossover = 4;
constexpr std::int64_t kMostCrossover = std::int64_t{1} << 36;
constexpr std::int64_t kSparseChunk = SparseOptions{}.chunk;

struct Question {
  Collective collective;
  int ranks;
  std::int64_t bytes;
  cluster::Cluster cluster;
  std::vector<int> grid;  // from --grid
  Topology topology;
  bool this_machine = false;  // predict what the engine does on this machine
  const Algorithm* override_algorithm =
      nullptr;  // with this_machine: the algorithm in SLUICE_ALGORITHM
};

// The links of this machine, as the engine has measured them for this number of ranks.
cluster::Cluster this_machine(int ranks) {
  const auto constants = engine::kept_constants(bootstrap::Environment::of_process(), ranks);
  if (!constants) {
    base::refuse(base::format(
        "this machine has not been measured with {} ranks: run 'sluice bench allreduce "
        "--ranks {}' first",
        ranks, ranks));
  }
  return {kThisMachine, ranks, *constants};
}

Question question_of(const Options& options) {
  Question question;
  question.collective = parse_collective(options.collective);
  question.bytes = base::parse_bytes(options.bytes).value();
  question.this_machine = options.cluster == kThisMachine;
  if (!question.this_machine) question.cluster = cluster::find_cluster(options.cluster).value();
  if (!options.grid.empty()) question.grid = parse_grid(options.grid);
  int sum = 0;
  for (const int ranks : question.grid) sum += ranks;
  if (options.ranks.empty() && sum == 0) base::refuse("give --ranks, or a --grid such as 4x8");
  question.ranks =
      options.ranks.empty()
          ? sum
          : static_cast<int>(
                base::parse_integer(options.ranks, 1, kMostExplainedRanks, "--ranks").value());
  if (sum != 0 && sum != question.ranks) {
    base::refuse(base::format("grid {} has {} ranks, not {}: change --grid or --ranks",
                              options.grid, sum, question.ranks));
  }
  if (question.ranks > kMostExplainedRanks) {
    base::refuse(base::format("--ranks must be a whole number from 1 to {}, not {}",
                              kMostExplainedRanks, question.ranks));
  }
  if (question.this_machine) {
    if (!question.grid.empty()) base::refuse("this machine is one node: leave out --grid");
    question.cluster = this_machine(question.ranks);
    question.override_algorithm =
        engine::find_override(engine::overrides_from(bootstrap::Environment::of_process()).value(),
                              question.collective, question.bytes);
  }
  question.topology =
      question.grid.empty() ? question.cluster.topology(question.ranks) : Topology{question.grid};
  return question;
}

// The terms of the predicted time: steps, bytes sent, grid and segments.
std::string show_load(const Candidate& candidate, const Question& question) {
  int steps = 0;
  for (const StepLoad& step : load_of(*candidate.algorithm, candidate.shape, question.topology)) {
    steps += step.repeat;
  }
  double most_sent = 0;
  for (Rank rank = 0; rank < candidate.shape.ranks; ++rank) {
    most_sent = std::max(most_sent, candidate.algorithm->sent(candidate.shape, rank).value());
  }
  std::string text = base::format("{:>6} {:>8.3f}", steps, most_sent);
  std::string with;
  if (!candidate.shape.grid.empty())
    with += base::format("  grid {}", show_grid(candidate.shape.grid));
  if (candidate.shape.segments > 1) with += base::format("  {} segments", candidate.shape.segments);
  return text + with;
}

nlohmann::ordered_json to_json(const Candidate& candidate) {
  const auto& shape = candidate.shape;
  return {{"algorithm", candidate.algorithm->name},
          {"predicted_us", candidate.seconds * 1e6},
          {"steps", candidate.algorithm->steps(shape)},
          {"grid", grid_json(shape.grid)},
          {"segments", shape.segments}};
}

// The predicted times of an all-reduce of f32 gradients, dense and sparse.
struct SparsePrediction {
  double sparsity = 0;
  std::int64_t sent_bytes = 0;  // the selected chunks and the norms of all chunks
  double dense_s = 0;
  double sparse_s = 0;     // including selection_s
  double selection_s = 0;  // local work of every rank

  bool pays() const { return sparse_s < dense_s; }
};

// Empty when sparse gradients do not apply. REQUIRES: 0 <= sparsity < 1.
std::optional<SparsePrediction> predict_sparse(const Question& question, double sparsity,
                                               const Selector& selector) {
  if (question.collective != Collective::AllReduce || question.ranks == 1) return std::nullopt;
  constexpr double kPasses = 2;  // add the gradient to the residual, then read it for the norms
  constexpr double kElementBytes = 4;
  const double bytes = static_cast<double>(question.bytes);
  const double chunk_bytes = kElementBytes * static_cast<double>(kSparseChunk);
  const double selected = std::ceil(bytes * (1 - sparsity) / chunk_bytes) * chunk_bytes;
  const double norms = std::ceil(bytes / chunk_bytes) * kElementBytes;
  SparsePrediction prediction{.sparsity = sparsity};
  prediction.sent_bytes = std::llround(std::min(selected, bytes) + norms);
  prediction.dense_s = selector.choose(question.bytes).seconds;
  prediction.selection_s = kPasses * bytes * question.cluster.constants.reduce_s_per_byte;
  prediction.sparse_s = selector.choose(prediction.sent_bytes).seconds + prediction.selection_s;
  return prediction;
}

std::string show(const SparsePrediction& prediction) {
  const std::string times = base::format(
      "Sparse gradients (sparsity {:.0f}%) send {} and take {}, of which {} select the chunks; "
      "dense\ngradients take {}.",
      100 * prediction.sparsity, base::format_bytes(static_cast<double>(prediction.sent_bytes)),
      base::format_seconds(prediction.sparse_s), base::format_seconds(prediction.selection_s),
      base::format_seconds(prediction.dense_s));
  if (!prediction.pays()) return times + " Sparse gradients do not pay here.";
  return base::format(
      "{} Sparse gradients are {:.1f} times faster, unless backward hides the communication.",
      times, prediction.dense_s / prediction.sparse_s);
}

void print_choice(const Question& question, const Options& options, const Selector& selector) {
  const std::vector<Candidate> candidates = selector.candidates(question.bytes);
  const auto crossovers = selector.crossovers(kLeastCrossover, kMostCrossover);
  // The algorithm asked about, else the one that would run: the cheapest, unless overridden.
  const Candidate* asked = &candidates.front();
  std::string_view wanted = options.algorithm;
  if (wanted.empty() && question.override_algorithm != nullptr)
    wanted = question.override_algorithm->name;
  for (const Candidate& candidate : candidates) {
    if (candidate.algorithm->name == wanted) asked = &candidate;
  }
  const bool not_priced = !wanted.empty() && asked->algorithm->name != wanted;
  const std::string_view chosen = not_priced ? wanted : asked->algorithm->name;
  const auto sparse = predict_sparse(question, options.sparsity, selector);
  if (options.json) {
    nlohmann::ordered_json json{{"collective", name(question.collective)},
                                {"ranks", question.ranks},
                                {"bytes", question.bytes},
                                {"cluster", question.cluster.name},
                                {"nodes", question.topology.nodes.size()},
                                {"chosen", chosen},
                                {"cheapest", candidates.front().algorithm->name}};
    for (const Candidate& candidate : candidates) json["candidates"].push_back(to_json(candidate));
    for (const auto& crossover : crossovers) {
      json["flips"].push_back(
          {{"from_bytes", crossover.bytes}, {"algorithm", crossover.candidate.algorithm->name}});
    }
    if (sparse) {
      json["sparse"] = {{"sparsity", sparse->sparsity},
                        {"sent_bytes", sparse->sent_bytes},
                        {"predicted_us", sparse->sparse_s * 1e6},
                        {"dense_us", sparse->dense_s * 1e6},
                        {"pays", sparse->pays()}};
    }
    base::print("{}\n", json.dump(2));
    return;
  }
  const auto nodes = question.topology.nodes.size();
  base::print(
      "{} of {} over {} ranks on {} {}, with the links of cluster {} ({})\n\n",
      name(question.collective), base::format_bytes(static_cast<double>(question.bytes)),
      question.ranks, nodes, nodes == 1 ? "node" : "nodes", question.cluster.name,
      question.this_machine ? "predicted from measured constants" : "predicted, not measured");
  base::print("  {:<34} {:>10} {:>7} {:>6} {:>8}\n", "algorithm", "predicted", "x best", "steps",
              "sent/S");
  for (const Candidate& candidate : candidates) {
    base::print(
        "{} {:<34} {:>10} {:>7.2f} {}\n", &candidate == asked && !not_priced ? "*" : " ",
        candidate.algorithm->name, base::format_seconds(candidate.seconds),
        candidates.front().seconds > 0 ? candidate.seconds / candidates.front().seconds : 1.0,
        show_load(candidate, question));
  }
  const Candidate& best = candidates.front();
  const char* const source = options.algorithm.empty() ? "SLUICE_ALGORITHM" : "--algorithm";
  if (not_priced) {
    base::print("\nChosen by {}: {}, which has not been measured here.\n", source, wanted);
  } else if (wanted.empty()) {
    base::print("\nChosen: {}", best.algorithm->name);
    if (candidates.size() > 1) {
      base::print(", {} faster than {}", base::format_seconds(candidates[1].seconds - best.seconds),
                  candidates[1].algorithm->name);
    }
    base::print(".\n");
  } else {
    base::print("\nChosen by {}: {}, {} slower than the fastest, {}.\n", source, wanted,
                base::format_seconds(asked->seconds - best.seconds), best.algorithm->name);
  }
  base::print("Choice by size:\n");
  for (std::size_t i = 0; i < crossovers.size(); ++i) {
    base::print("  from {:>10}{}  {}\n",
                base::format_bytes(static_cast<double>(crossovers[i].bytes)),
                i + 1 < crossovers.size()
                    ? base::format(" to {:>10}",
                                   base::format_bytes(static_cast<double>(crossovers[i + 1].bytes)))
                    : std::string(14, ' '),
                crossovers[i].candidate.algorithm->name);
  }
  if (sparse) base::print("\n{}\n", show(*sparse));
}

void print_schedule_of(const Question& question, const Options& options, const Selector& selector) {
  Candidate chosen = selector.choose(question.bytes);
  if (!options.algorithm.empty()) {
    const Algorithm& algorithm = *find_algorithm(options.algorithm).value();
    for (const Candidate& candidate : selector.candidates(question.bytes)) {
      if (candidate.algorithm == &algorithm) chosen = candidate;
    }
    if (!question.grid.empty()) chosen.shape.grid = question.grid;
    chosen.shape.segments =
        options.segments.empty() ? chosen.shape.segments : parse_segments(options.segments).front();
    chosen.shape = complete_shape(algorithm, chosen.shape).value();
    chosen.algorithm = &algorithm;
  }
  constexpr int kMostPrintedRanks = 1024;
  if (question.ranks > kMostPrintedRanks) {
    base::refuse(base::format("a schedule of {} ranks is too long to print: ask for at most {}",
                              question.ranks, kMostPrintedRanks));
  }
  if (options.draw && question.ranks > kMostDrawnRanks) {
    base::refuse(
        base::format("a drawing of {} ranks is too wide: ask for at most {}, or leave out --draw",
                     question.ranks, kMostDrawnRanks));
  }
  const Schedule schedule = build_schedule(*chosen.algorithm, chosen.shape);
  if (options.draw) {
    base::print("{}", draw(schedule));
  } else {
    print_schedule(std::cout, schedule);
    std::cout.flush();
  }
}

void run(const Options& options) {
  const Question question = question_of(options);
  const Algorithm* file = nullptr;
  if (!options.algorithm.empty()) {
    const Algorithm& algorithm = *find_algorithm(options.algorithm).value();
    (void)complete_shape(algorithm, {.collective = question.collective,
                                     .ranks = question.ranks,
                                     .grid = question.grid,
                                     .root = options.root})
        .value();
    if (algorithm.file != nullptr) {
      file = &algorithm;
      require_proof(algorithm);
    }
  }
  if (options.root < 0 || options.root >= question.ranks) {
    base::refuse(base::format("root {} is not one of the {} ranks", options.root, question.ranks));
  }
  if (options.draw && !options.schedule) base::refuse("--draw needs --schedule: give both");
  if (!(options.sparsity >= 0 && options.sparsity < 1))
    base::refuse(
        base::format("--sparsity must be at least 0 and less than 1, not {}", options.sparsity));
  const Selector selector{question.collective,
                          question.topology,
                          question.cluster.constants,
                          {.root = options.root, .file = file}};
  if (options.schedule) {
    print_schedule_of(question, options, selector);
  } else {
    print_choice(question, options, selector);
  }
}

}  // namespace

void add_explain(CommandLine& program, int& exit_status) {
  auto options = std::make_shared<Options>();
  CommandLine* const command =
      program.add_subcommand("explain", "Show which algorithm is chosen, and why");
  command->add_option("--ranks", options->ranks, "Number of ranks");
  command->add_option("--bytes", options->bytes, "Size of the buffer: 51M, 64KB, 4096")->required();
  command->add_option(
      "--algorithm", options->algorithm,
      "Explain this algorithm instead of the fastest; file:PATH: your own schedule");
  command
      ->add_option("--collective", options->collective,
                   "all_reduce, reduce_scatter, all_gather, broadcast or reduce")
      ->capture_default_str();
  command->add_option("--grid", options->grid,
                      "Ranks of the nodes: 4x8 (4 nodes of 8), 3+5 (default: the cluster's)");
  command
      ->add_option("--cluster", options->cluster,
                   "A built-in cluster, a TOML file, or this-machine")
      ->capture_default_str();
  command->add_option("--segments", options->segments,
                      "Segments per tree; with --schedule and --algorithm");
  command
      ->add_option("--sparsity", options->sparsity,
                   "Fraction of the gradient that sparse gradients do not send;\n"
                   "predicts whether they pay off")
      ->capture_default_str();
  command->add_option("--root", options->root, "Root rank of broadcast and reduce")
      ->capture_default_str();
  command->add_flag("--schedule", options->schedule,
                    "Print the schedule as text, for sluice verify --file");
  command->add_flag("--draw", options->draw, "With --schedule: print a picture; up to 16 ranks");
  command->add_flag("--json", options->json, "Print one JSON document");
  command->footer(
      "Examples:\n"
      "  sluice explain --ranks 2 --bytes 1M --cluster this-machine\n"
      "  sluice explain --ranks 2048 --bytes 51M --cluster abci\n"
      "  sluice explain --ranks 5 --bytes 1M --algorithm halving_doubling --schedule --draw\n"
      "  sluice explain --grid 3+5 --bytes 16M --algorithm hierarchical --schedule \\\n"
      "    | sluice verify --file -");
  command->callback([options, &exit_status] {
    run(*options);
    exit_status = kExitDone;
  });
}

}  // namespace sluice::cli
