// simulated_box.cc - measured times against `sluice simulate`: two groups of hosts in a box, joined
// by a thin uplink or by one that never limits.
//
//   simulated_box [--hosts 4] [--mbit 100] [--calibrate 1M,8M] [--compare 2M,4M] [--rounds 3]
//
// Two constants are calibrated, with a ring over the wide uplink and with sizes that are not
// compared: the fraction of the link rate that TCP reaches, and the time per message. Everything
// else is predicted. Times are medians over alternating rounds.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "base/format.h"
#include "base/text.h"
#include "bench/network/two_groups.h"
#include "bench/program.h"
#include "simulate/collective.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

constexpr const char* kAlgorithms[] = {"ring", "halving_doubling", "halving_doubling:far"};
constexpr double kWithin = 0.15;
constexpr int kRepeats = 4;  // per round

struct Options {
  int hosts = 4;  // per group
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

// Fits a line through two points: the latency of the ring and the time per byte.
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

double simulated(const Options& options, cluster::Cluster cluster, const Case& each) {
  cluster.constants.network.levels = {
      {.nodes = options.hosts, .oversubscription = each.thin ? 1.0 * options.hosts : 1.0}};
  const int ranks = 2 * options.hosts;
  simulate::CollectiveSimulator simulator =
      simulate::CollectiveSimulator::on(cluster, ranks).value();
  const Algorithm& algorithm = *find_algorithm(each.algorithm).value();
  const Shape shape = complete_shape(algorithm, {.ranks = ranks}).value();
  const auto done =
      simulator.run(algorithm, shape, {.bytes = static_cast<double>(each.bytes)}).value();
  return *std::max_element(done.begin(), done.end());
}

// Whether all predictions are within kWithin.
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
  base::print("calibrated with a ring of {}: {:.1f}% of the link rate, {} per message\n\n",
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
  base::print("\nworst error: {:.1f}%, limit {:.0f}%\n", 100 * worst, 100 * kWithin);
  if (!options.output.empty()) std::ofstream{options.output} << document.dump(2) << "\n";
  return worst <= kWithin;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Compares simulated with measured times in a cluster in a box", "simulated_box"};
  sluice::bench::Options options;
  app.add_option("--hosts", options.hosts, "Hosts in each of the two groups")
      ->check(CLI::Range(1, 16));
  app.add_option("--mbit", options.mbit, "Mbit/s of a host's link and of the thin uplink")
      ->check(CLI::Range(1, 1000));
  app.add_option("--calibrate", options.calibrate, "Two sizes of the ring for the calibration")
      ->delimiter(',')
      ->expected(2);
  app.add_option("--compare", options.compare, "Sizes to compare")->delimiter(',');
  app.add_option("--rounds", options.rounds,
                 "Rounds of several measurements each; the median is compared")
      ->check(CLI::Range(1, 99));
  app.add_option("--output", options.output, "Write the results to this file as JSON");
  app.footer(
      "Exit status: 0 all errors are within 15%, 1 one is not, 2 wrong usage, or no network\n"
      "namespaces on this machine.\n"
      "Example:\n"
      "  simulated_box --mbit 200");
  return sluice::bench::run_program(app, argc, argv,
                                    [&] { return sluice::bench::run(options) ? 0 : 1; });
}
