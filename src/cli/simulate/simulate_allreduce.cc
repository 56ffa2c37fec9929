#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "cli/simulate/simulate.h"
#include "simulate/collective.h"
#include "simulate/jitter.h"
#include "simulate/uncertainty.h"
#include "sluice/analysis/select.h"

namespace sluice::cli {
namespace {

struct Row {
  int ranks = 0;
  std::size_t nodes = 0;
  Candidate candidate;
  double seconds = 0;
  double bus_bytes_per_s = 0;
};

std::vector<Candidate> candidates_of(const AllReduceQuestion& question, const Topology& topology) {
  const Selector selector{
      Collective::AllReduce, topology, question.world.cluster.constants, {.lanes = false}};
  std::vector<Candidate> all = selector.candidates(question.bytes);
  if (question.algorithm.empty()) all.resize(1);
  if (!question.algorithm.empty() && question.algorithm != "all") {
    const Algorithm* const wanted = find_algorithm(question.algorithm).value();
    std::erase_if(all, [&](const Candidate& each) { return each.algorithm != wanted; });
    if (all.empty()) {
      throw Error{Status{Code::InvalidArgument,
                         base::format("{} does no all_reduce that cluster {} could run",
                                      wanted->name, question.world.cluster.name)}};
    }
  }
  for (Candidate& candidate : all) {
    if (question.world.grid_rows > 0 && candidate.algorithm->uses_grid) {
      candidate.shape.grid = simulate::grid_of(question.world, candidate.shape.ranks).value();
      candidate.shape = complete_shape(*candidate.algorithm, candidate.shape).value();
    }
    if (question.segments > 0 && candidate.algorithm->uses_segments)
      candidate.shape.segments = question.segments;
  }
  return all;
}

std::vector<Row> rows_of(const AllReduceQuestion& question) {
  std::vector<Row> rows;
  const auto bytes = static_cast<double>(question.bytes);
  for (const int ranks : question.ranks) {
    simulate::CollectiveSimulator simulator =
        simulate::CollectiveSimulator::on(question.world.cluster, ranks, question.world.conditions)
            .value();
    std::vector<Row> of_ranks;
    for (const Candidate& candidate : candidates_of(question, simulator.topology())) {
      simulate::RunOptions options{.bytes = bytes, .lanes = question.world.lanes};
      if (question.world.jitter_s > 0)
        options.starts_s = simulate::lateness(question.world.jitter_s, question.world.seed, ranks);
      const std::vector<double> done =
          simulator.run(*candidate.algorithm, candidate.shape, options).value();
      const double seconds = *std::max_element(done.begin(), done.end());
      const double bus = seconds > 0 ? 2.0 * (ranks - 1) / ranks * bytes / seconds : 0;
      of_ranks.push_back({ranks, simulator.topology().nodes.size(), candidate, seconds, bus});
    }
    std::stable_sort(of_ranks.begin(), of_ranks.end(),
                     [](const Row& a, const Row& b) { return a.seconds < b.seconds; });
    rows.insert(rows.end(), of_ranks.begin(), of_ranks.end());
  }
  return rows;
}

void doubt(const std::vector<Row>& rows) {
  std::map<std::string_view, std::vector<simulate::ScalePoint>> by_algorithm;
  for (const Row& row : rows)
    by_algorithm[row.candidate.algorithm->name].push_back({row.ranks, row.seconds});
  for (const auto& [name, points] : by_algorithm) {
    if (const Status status = simulate::check_scaling(points); !status.ok()) throw Error{status};
  }
}

}  // namespace

void simulate_all_reduce(const AllReduceQuestion& question) {
  const std::vector<Row> rows = rows_of(question);
  if (question.world.jitter_s == 0) doubt(rows);
  const auto bytes = static_cast<double>(question.bytes);
  if (question.json) {
    nlohmann::ordered_json json{{"simulated", true},
                                {"cluster", question.world.cluster.name},
                                {"collective", "all_reduce"},
                                {"bytes", question.bytes},
                                {"rows", nlohmann::ordered_json::array()}};
    for (const Row& row : rows) {
      json["rows"].push_back({{"ranks", row.ranks},
                              {"nodes", row.nodes},
                              {"algorithm", row.candidate.algorithm->name},
                              {"segments", row.candidate.shape.segments},
                              {"lanes", question.world.lanes},
                              {"simulated_us", row.seconds * 1e6},
                              {"alpha_beta_us", row.candidate.seconds * 1e6},
                              {"algbw_gbps", row.seconds > 0 ? bytes / row.seconds / 1e9 : 0},
                              {"busbw_gbps", row.bus_bytes_per_s / 1e9}});
    }
    base::print("{}\n", json.dump(2));
    return;
  }
  base::print("Simulated: all_reduce of {} on cluster {}. None of it was measured.\n\n",
              base::format_bytes(bytes), question.world.cluster.name);
  base::print("{:>7} {:>6}  {:<34} {:>10} {:>11} {:>11}\n", "ranks", "nodes", "algorithm",
              "simulated", "algbw GB/s", "busbw GB/s");
  for (const Row& row : rows) {
    base::print("{:>7} {:>6}  {:<34} {:>10} {:>11.2f} {:>11.2f}\n", row.ranks, row.nodes,
                row.candidate.algorithm->name, base::format_seconds(row.seconds),
                row.seconds > 0 ? bytes / row.seconds / 1e9 : 0, row.bus_bytes_per_s / 1e9);
  }
}

}  // namespace sluice::cli
