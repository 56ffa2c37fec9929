#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "cli/simulate/simulate.h"

namespace sluice::cli {
namespace {

using simulate::AllReduceTime;

void check(const std::vector<AllReduceTime>& rows) {
  std::map<std::string_view, std::vector<simulate::ScalePoint>> by_algorithm;
  for (const AllReduceTime& row : rows)
    by_algorithm[row.candidate.algorithm->name].push_back({row.ranks, row.seconds});
  for (const auto& [name, points] : by_algorithm) {
    if (const Status status = simulate::check_scaling(points); !status.ok()) throw Error{status};
  }
}

}  // namespace

void simulate_all_reduces(const AllReduceSweep& sweep) {
  std::vector<AllReduceTime> rows;
  for (const int ranks : sweep.ranks) {
    const std::vector<AllReduceTime> times =
        simulate::simulate_all_reduce(sweep.scenario, ranks, sweep.options).value();
    rows.insert(rows.end(), times.begin(), times.end());
  }
  if (sweep.scenario.jitter_s == 0) check(rows);
  const auto bytes = static_cast<double>(sweep.options.bytes);
  if (sweep.json) {
    nlohmann::ordered_json json{{"simulated", true},
                                {"cluster", sweep.scenario.cluster.name},
                                {"collective", "all_reduce"},
                                {"bytes", sweep.options.bytes},
                                {"rows", nlohmann::ordered_json::array()}};
    for (const AllReduceTime& row : rows) {
      json["rows"].push_back({{"ranks", row.ranks},
                              {"nodes", row.nodes},
                              {"algorithm", row.candidate.algorithm->name},
                              {"segments", row.candidate.shape.segments},
                              {"simulated_us", row.seconds * 1e6},
                              {"alpha_beta_us", row.candidate.seconds * 1e6},
                              {"algbw_gbps", row.seconds > 0 ? bytes / row.seconds / 1e9 : 0},
                              {"busbw_gbps", row.bus_bytes_per_s / 1e9}});
    }
    base::print("{}\n", json.dump(2));
    return;
  }
  base::print("Simulated: all_reduce of {} on cluster {}. Nothing was measured.\n\n",
              base::format_bytes(bytes), sweep.scenario.cluster.name);
  base::print("{:>7} {:>6}  {:<34} {:>10} {:>11} {:>11}\n", "ranks", "nodes", "algorithm",
              "simulated", "algbw GB/s", "busbw GB/s");
  for (const AllReduceTime& row : rows) {
    base::print("{:>7} {:>6}  {:<34} {:>10} {:>11.2f} {:>11.2f}\n", row.ranks, row.nodes,
                row.candidate.algorithm->name, base::format_seconds(row.seconds),
                row.seconds > 0 ? bytes / row.seconds / 1e9 : 0, row.bus_bytes_per_s / 1e9);
  }
}

}  // namespace sluice::cli
