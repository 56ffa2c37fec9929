// thin_tree.cc - the cost of a thin uplink: two groups of hosts joined by a link as fast as one
// host's, against the same hosts joined by a link that never limits.
//
//   thin_tree [--hosts 4] [--mbit 100] [--bytes 8M] [--rounds 3]
//
// The rounds alternate between the two clusters, and every result is checked. A ring in the order
// of the groups crosses the uplink only once in each direction, so it can train on a thin tree.

#include <CLI/CLI.hpp>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/text.h"
#include "bench/network/two_groups.h"
#include "bench/program.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

constexpr const char* kAlgorithms[] = {"ring", "halving_doubling", "halving_doubling:far"};

struct Options {
  int hosts = 4;  // per group
  int mbit = 100;
  std::string bytes = "8M";
  int rounds = 3;
  std::string output;
};

void run(const Options& options) {
  const TwoGroups thin{{options.hosts, options.mbit, options.mbit}};
  const TwoGroups wide{{options.hosts, options.mbit, 2 * options.hosts * options.mbit}};
  const std::int64_t bytes = base::parse_bytes(options.bytes).value();
  std::map<std::string, std::vector<double>> thin_s;
  std::map<std::string, std::vector<double>> wide_s;
  for (int round = 0; round < options.rounds; ++round) {
    for (const std::string algorithm : kAlgorithms) {
      base::print(stderr, "round {} of {}: {}\n", round + 1, options.rounds, algorithm);
      thin_s[algorithm].push_back(thin.times(algorithm, bytes, 1).front());
      wide_s[algorithm].push_back(wide.times(algorithm, bytes, 1).front());
    }
  }
  base::print(
      "2 groups of {} hosts at {} Mbit/s, thin uplink {} Mbit/s; all_reduce of {}, medians of {}\n",
      options.hosts, options.mbit, options.mbit, options.bytes, options.rounds);
  base::print("{:<24} {:>12} {:>12} {:>10}\n", "", "thin uplink", "wide uplink", "keeps");
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const std::string algorithm : kAlgorithms) {
    const double with = median(thin_s[algorithm]);
    const double without = median(wide_s[algorithm]);
    base::print("{:<24} {:>12} {:>12} {:>9.0f}%\n", algorithm, base::format_seconds(with),
                base::format_seconds(without), 100 * without / with);
    document.push_back({{"algorithm", algorithm}, {"thin_s", with}, {"wide_s", without}});
  }
  if (!options.output.empty()) std::ofstream{options.output} << document.dump(2) << "\n";
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Measures the cost of a thin uplink between two groups of hosts", "thin_tree"};
  sluice::bench::Options options;
  app.add_option("--hosts", options.hosts, "Hosts in each of the two groups")
      ->check(CLI::Range(1, 16));
  app.add_option("--mbit", options.mbit, "Mbit/s of a host's link and of the thin uplink")
      ->check(CLI::Range(1, 1000));
  app.add_option("--bytes", options.bytes, "Size of the buffer");
  app.add_option("--rounds", options.rounds, "Measurements of each; the median is shown")
      ->check(CLI::Range(1, 99));
  app.add_option("--output", options.output, "Write the results to this file as JSON");
  app.footer(
      "Exit status: 0 done, 2 wrong usage, or no network namespaces on this machine.\n"
      "Example:\n"
      "  thin_tree --mbit 200");
  return sluice::bench::run_program(app, argc, argv, [&] {
    sluice::bench::run(options);
    return 0;
  });
}
