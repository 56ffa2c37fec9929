// network.cc - times all-reduces over a cluster in a box.
//
//   network [--hosts 4] [--mbit 1000] [--sizes 4:256M] [--contenders openmpi,gloo,stream]
//
// Hosts are network namespaces with shaped links (tests/box/cluster_box.h). All contenders start at
// once and take turns, as in bench/allreduce; all results are checked. Needs root.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/format.h"
#include "base/text.h"
#include "bench/network/measurement.h"
#include "bench/network/outcome.h"
#include "bench/network/roster.h"
#include "bench/program.h"
#include "cli/arguments.h"
#include "sluice/status.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;

struct Options {
  EmulatedCluster cluster;
  std::string sizes = "4:256M";
  int rounds = 5;
  std::vector<std::string> contenders = known_contenders();
  std::string output;
};

void print_message(const std::string& sentence) { base::print(stderr, "network: {}\n", sentence); }

[[noreturn]] void refuse(Code code, const std::string& sentence) {
  throw Error{Status{code, sentence}};
}

void check(EmulatedCluster& cluster, bool hosts_given) {
  if (!cluster.groups.empty()) {
    const int together = std::accumulate(cluster.groups.begin(), cluster.groups.end(), 0);
    if (!hosts_given) cluster.hosts = together;
    if (together != cluster.hosts) {
      refuse(Code::InvalidArgument,
             base::format("--groups has {} hosts in total, but --hosts is {}", together,
                          cluster.hosts));
    }
  }
  if (cluster.ranks() < 2 || cluster.ranks() > 200)
    refuse(Code::InvalidArgument,
           base::format("the number of ranks must be 2 to 200, not {}", cluster.ranks()));
}

box::ClusterBox make_box(const EmulatedCluster& cluster) {
  if (geteuid() != 0)
    refuse(Code::InvalidInput, "a cluster in a box needs root for network namespaces: use sudo");
  auto made = box::ClusterBox::make({.hosts = cluster.hosts,
                                     .mbit_per_s = cluster.mbit_per_s,
                                     .groups = cluster.groups,
                                     .uplink_mbit_per_s = cluster.uplink_mbit_per_s});
  if (!made.ok()) {
    refuse(Code::InvalidInput, base::format("this machine cannot create network namespaces: {}",
                                            made.status().message()));
  }
  return std::move(made.value());
}

int run(const Options& options) {
  const EmulatedCluster& cluster = options.cluster;
  const std::vector<std::int64_t> sizes = cli::parse_sizes(options.sizes, sizeof(float));
  const auto largest = static_cast<double>(*std::max_element(sizes.begin(), sizes.end()));
  cli::require_memory(2.0 * cluster.ranks() * largest);
  const StopSignals
      signals;  // before the box, so that no signal interrupts its creation and removal
  const box::ClusterBox box = make_box(cluster);
  const TemporaryFolder folder;
  const ClusterSetup setup{
      .box = box,
      .cluster = cluster,
      .folder = folder,
      .programs = fs::read_symlink("/proc/self/exe").parent_path().parent_path()};
  std::vector<ContenderSetting> settings = roster(options.contenders, setup);
  constexpr double kPatience = 20;  // times the lower bound for the largest buffer
  for (ContenderSetting& setting : settings) {
    const std::chrono::seconds limit{static_cast<int>(kPatience * cluster.least_s(largest))};
    setting.team.slice_limit = std::max(setting.team.slice_limit, limit);
  }
  Measurement measurement{settings, setup, signals, print_message};
  double total = 0;
  for (const std::int64_t bytes : sizes)
    total += measurement.effort(static_cast<std::uint64_t>(bytes));
  Progress progress{total};
  print_title(cluster);
  std::vector<NetworkRow> rows;
  for (const std::int64_t bytes : sizes) {
    progress.begin(base::format_bytes(static_cast<double>(bytes)));
    rows.push_back(measurement.run(static_cast<std::uint64_t>(bytes), options.rounds, progress));
    progress.clear();
    print_row(rows.back(), cluster);
  }
  print_summary(rows);
  if (const std::string disturbances = measurement.disturbances(); !disturbances.empty())
    base::print("  {}\n", disturbances);
  if (!options.output.empty()) {
    std::ofstream file{options.output};
    file << to_json(rows, cluster).dump(2) << "\n";
    if (!file.flush()) {
      print_message(base::format("cannot write {}", options.output));
      return 3;
    }
  }
  return measurement.well() ? 0 : 1;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Times all-reduces of several libraries over a cluster in a box", "network"};
  sluice::bench::Options options;
  sluice::bench::EmulatedCluster& cluster = options.cluster;
  const CLI::Range rates{0, 100'000};
  const auto* const hosts = app.add_option("--hosts", cluster.hosts, "Number of hosts")
                                ->check(CLI::Range(1, 200))
                                ->capture_default_str();
  app.add_option("--ranks-per-host", cluster.ranks_per_host, "Ranks on each host")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--mbit", cluster.mbit_per_s, "Mbit/s of a host's link, each way; 0: unlimited")
      ->check(rates)
      ->capture_default_str();
  app.add_option("--groups", cluster.groups, "Hosts of each group: 4,4 (default: one switch)")
      ->delimiter(',')
      ->check(CLI::Range(1, 200));
  app.add_option("--uplink-mbit", cluster.uplink_mbit_per_s,
                 "Mbit/s of a group's uplink, each way; 0: unlimited")
      ->check(rates)
      ->capture_default_str();
  app.add_option("--sizes", options.sizes,
                 "4:1M: doublings from 4 bytes to 1 MiB; or a list: 1K,1M")
      ->capture_default_str();
  app.add_option("--rounds", options.rounds, "Slices per contender and size; the median is shown")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--contenders", options.contenders, "Contenders to measure")
      ->delimiter(',')
      ->capture_default_str();
  app.add_option("--output", options.output, "Write the results to this file as JSON")->take_last();
  app.footer(
      "Exit status: 0 done, 1 a contender failed or computed a wrong result, 2 wrong usage, or no\n"
      "network namespaces on this machine.\n"
      "Example:\n"
      "  network --hosts 4 --sizes 1K,1M,64M --contenders sluice_tcp,openmpi,stream");
  return sluice::bench::run_program(app, argc, argv, [&] {
    sluice::bench::check(cluster, hosts->count() > 0);
    return sluice::bench::run(options);
  });
}
