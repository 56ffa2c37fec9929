// simulated_box.cc - `sluice simulate` against the clock: two groups of hosts in a box, joined by a
// thin uplink or by one that never limits, and the same hosts simulated.
//
//   simulated_box [--hosts 4] [--mbit 100] [--calibrate 1M,8M] [--compare 2M,4M] [--rounds 3]
//
// Two constants are calibrated, on a ring over the wide uplink, of sizes that are not compared:
// what TCP leaves of a link's rate, and what a message takes besides its bytes. Everything else is
// predicted. Medians count, of rounds that take turns.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/format.h"
#include "base/text.h"
#include "bench/allreduce/median.h"
#include "bench/network/two_groups.h"
#include "bench/program.h"
#include "simulate/collective.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

constexpr const char* kAlgorithms[] = {"ring", "halving_doubling", "halving_doubling:far"};
constexpr double kWithin = 0.15;
constexpr int kRepeats = 4;  // a round

struct Options {
  int hosts = 4;  // of a group
  int mbit = 100;
  std::vector<std::string> calibrate{"1M", "8M"};
  std::vector<std::string> compare{"2M", "4M"};
  int rounds = 3;
  std::string output;
};

std::vector<std::int64_t> sizes(const std::vector<std::string>& texts) {
  std::vector<std::int64_t> all;
  for (const std::string& text : texts) all.push_back(base::parse_bytes(text).value());
  return all;
}

struct Case {
  bool thin = false;
  std::string algorithm;
  std::int64_t bytes = 0;

  auto key() const { return std::tie(thin, algorithm, bytes); }
  bool operator<(const Case& other) const { return key() < other.key(); }
};
using Times = std::map<Case, double>;  // medians

Times measure(const Options& options, const std::vector<Case>& cases) {
  const TwoGroups thin{{options.hosts, options.mbit, options.mbit}};
  const TwoGroups wide{{options.hosts, options.mbit, 2 * options.hosts * options.mbit}};
  std::map<Case, std::vector<double>> all;
  for (int round = 0; round < options.rounds; ++round) {
    base::print(stderr, "round {} of {}\n", round + 1, options.rounds);
    for (const Case& each : cases) {
      const auto seconds = (each.thin ? thin : wide).times(each.algorithm, each.bytes, kRepeats);
      all[each].insert(all[each].end(), seconds.begin(), seconds.end());
    }
  }
  Times times;
  for (const auto& [each, seconds] : all) times[each] = median(seconds);
  return times;
}

// Of a line through two points: what a ring takes besides its bytes, and what a byte takes.
cluster::Cluster calibrated(const Options& options, const Times& times) {
  const std::vector<std::int64_t> at = sizes(options.calibrate);
  const double t0 = times.at({false, "ring", at.front()});
  const double t1 = times.at({false, "ring", at.back()});
  const double s_per_byte = (t1 - t0) / static_cast<double>(at.back() - at.front());
  const int n = 2 * options.hosts;
  const double latency =
      std::max(0.0, t0 - s_per_byte * static_cast<double>(at.front())) / (2 * (n - 1));
  cluster::Cluster cluster;
  cluster.name = "box";
  cluster.constants.between = {latency, 2.0 * (n - 1) / n / s_per_byte};
  return cluster;
}

double simulated(const Options& options, cluster::Cluster cluster, const Case& of) {
  cluster.network.levels = {
      {.nodes = options.hosts, .oversubscription = of.thin ? 1.0 * options.hosts : 1.0}};
  const int ranks = 2 * options.hosts;
  simulate::CollectiveSimulator simulator =
      simulate::CollectiveSimulator::on(cluster, ranks).value();
  const Algorithm& algorithm = *find_algorithm(of.algorithm).value();
  const Shape shape = complete_shape(algorithm, {.ranks = ranks}).value();
  const auto done =
      simulator.run(algorithm, shape, {.bytes = static_cast<double>(of.bytes)}).value();
  return *std::max_element(done.begin(), done.end());
}

// Whether all were near enough.
bool run(const Options& options) {
  std::vector<Case> cases;
  for (const std::int64_t bytes : sizes(options.calibrate)) cases.push_back({false, "ring", bytes});
  const std::size_t calibrating = cases.size();
  for (const std::int64_t bytes : sizes(options.compare)) {
    for (const std::string algorithm : kAlgorithms) {
      for (const bool thin : {true, false}) cases.push_back({thin, algorithm, bytes});
    }
  }
  const Times times = measure(options, cases);
  const cluster::Cluster cluster = calibrated(options, times);
  const Link link = cluster.constants.between;
  base::print("2 groups of {} hosts at {} Mbit/s, medians of {}\n", options.hosts, options.mbit,
              options.rounds * kRepeats);
  base::print("calibrated on a ring of {}: {:.1f}% of the rate, {} a message\n\n",
              base::join(options.calibrate, " and "),
              link.bandwidth_bytes_per_s * 8 / (options.mbit * 1e6) * 100,
              base::format_seconds(link.latency_s));
  base::print("| algorithm | uplink | bytes | measured | simulated | error |\n");
  base::print("|---|---|---|---|---|---|\n");
  double worst = 0;
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (std::size_t i = calibrating; i < cases.size(); ++i) {
    const Case& each = cases[i];
    const double measured_s = times.at(each);
    const double simulated_s = simulated(options, cluster, each);
    const double error = simulated_s / measured_s - 1;
    worst = std::max(worst, std::abs(error));
    base::print("| {} | {} | {} | {} | {} | {:+.1f}% |\n", each.algorithm,
                each.thin ? "thin" : "wide", base::format_bytes(static_cast<double>(each.bytes)),
                base::format_seconds(measured_s), base::format_seconds(simulated_s), 100 * error);
    document.push_back({{"algorithm", each.algorithm},
                        {"thin", each.thin},
                        {"bytes", each.bytes},
                        {"measured_s", measured_s},
                        {"simulated_s", simulated_s}});
  }
  base::print("\nworst: {:.1f}%, of {:.0f}% at the most\n", 100 * worst, 100 * kWithin);
  if (!options.output.empty()) std::ofstream{options.output} << document.dump(2) << "\n";
  return worst <= kWithin;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Simulated times beside measured ones, in a cluster in a box", "simulated_box"};
  sluice::bench::Options options;
  app.add_option("--hosts", options.hosts, "In each of the two groups")->check(CLI::Range(1, 16));
  app.add_option("--mbit", options.mbit, "Of a host's link and of the thin uplink")
      ->check(CLI::Range(1, 1000));
  app.add_option("--calibrate", options.calibrate, "Two sizes of the ring that is calibrated on")
      ->delimiter(',')
      ->expected(2);
  app.add_option("--compare", options.compare, "Sizes that are compared")->delimiter(',');
  app.add_option("--rounds", options.rounds, "Of several each, of which the median counts")
      ->check(CLI::Range(1, 99));
  app.add_option("--output", options.output, "A file for the results as JSON");
  app.footer(
      "Exit status: 0 all within 15%, 1 some are not, 2 wrong usage or no such box here.\n"
      "Example:\n  simulated_box --mbit 200");
  return sluice::bench::run_program(app, argc, argv,
                                    [&] { return sluice::bench::run(options) ? 0 : 1; });
}
