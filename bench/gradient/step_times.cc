// step_times.cc - what a training step costs over slow links, by how its gradients travel.
//
//   step_times --hosts 2 --batch 1100 --ratio 0.45   communication is 0.45 of computation
//   step_times --hosts 4 --batch 200 --plain 3.06    a plain step is 3.06 times an unlimited one
//
// Hosts are network namespaces with shaped links, a rank on each (tests/box/cluster_box.h); all
// ways to train run in the same processes and take turns (contest.h). Needs root.
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/format.h"
#include "base/text.h"
#include "bench/gradient/bars.h"
#include "bench/gradient/contest.h"
#include "bench/gradient/ways.h"
#include "bench/program.h"
#include "bootstrap/host.h"
#include "sluice/status.h"
#include "tests/box/box_ranks.h"

namespace sluice::bench {
namespace {

struct Options {
  int hosts = 2;
  ContestOptions contest;
  std::string theta = "4M";
  std::vector<std::string> ways;  // besides alone and unlimited; empty: all
  std::vector<std::string> most;  // bars, as WAY:UNIT:TIMES
  std::string output;
};

Told* shared_told() {
  void* const page =
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error{"no memory to share"};
  return new (page) Told{};
}

// Whether all bars are met.
bool print(const Options& options, const std::vector<Way>& ways, const std::vector<Bar>& bars,
           const Told& told) {
  const Workload& workload = options.contest.workload;
  base::print("{}, {} images of {}x{} a rank, {} hosts of 1 rank, links of {:.0f} Mbit/s\n",
              workload.model, workload.batch, workload.image, workload.image, options.hosts,
              told.limited_mbit);
  base::print("computation {}, all-reduce of {} alone {} ({:.2f} of it)\n",
              base::format_seconds(told.steps[kAloneWay].s),
              base::format_bytes(told.gradient_bytes), base::format_seconds(told.transfer_s),
              told.transfer_of_alone);
  base::print("sending what is ready at once, at the link's rate: {}; at a plain stream's: {}\n",
              base::format_seconds(told.strict_bound_s), base::format_seconds(told.bound_s));
  base::print("  {:<18} {:>10}", "", "a step");
  for (const std::string_view unit : kUnits) base::print(" {:>12}", base::format("x {}", unit));
  base::print("\n");
  nlohmann::ordered_json document;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const StepTime& step = told.steps[way];
    base::print("  {:<18} {:>10} {:>12.3f}\n", ways[way].name, base::format_seconds(step.s),
                base::join(step.of, " "));
    document["step_s"][ways[way].name] = step.s;
    document["of_unlimited"][ways[way].name] = step.of[kUnlimitedUnit];
  }
  base::print(
      "medians of {} rounds of slices of {} steps, ratios within a round; others had up to {:.1f}% "
      "of the cores\n",
      options.contest.rounds, options.contest.steps, 100 * told.most_stolen);
  bool all_met = true;
  for (const Bar& bar : bars) {
    const double times = told.steps[bar.way].of[bar.unit];
    const bool met = times <= bar.times;
    all_met = all_met && met;
    base::print("{}: {:.3f} x {}; the bar is {:.2f}: {}\n", ways[bar.way].name, times,
                kUnits[bar.unit], bar.times, met ? "met" : "not met");
  }
  document["mbit"] = told.limited_mbit;
  document["transfer_s"] = told.transfer_s;
  document["bound_s"] = told.strict_bound_s;
  document["stream_bound_s"] = told.bound_s;
  if (!options.output.empty()) std::ofstream{options.output} << document.dump(2) << "\n";
  return all_met;
}

// A host has cores of its own. Ranks that share one here always share the same: left to the system,
// three could meet on one core, and the others wait for them.
void take_core(const Communicator& comm) {
  const std::vector<int> cores = bootstrap::usable_cores();
  (void)bootstrap::pin_to(
      bootstrap::share_of_cores(cores, comm.size(), comm.rank()));  // else it is slower, not wrong
}

// Whether all bars are met.
bool run(const Options& options) {
  const auto theta = static_cast<std::size_t>(base::parse_bytes(options.theta).value());
  const std::vector<Way> ways = ways_of(theta, options.ways);
  const std::vector<Bar> bars = bars_of(options.most, ways);
  // Ranks that join choose algorithms by what the links give then: slow ones, as in the rounds.
  box::ClusterBox cluster =
      box::ClusterBox::make({.hosts = options.hosts, .mbit_per_s = options.contest.fastest})
          .value();
  Told* const told = shared_told();
  std::vector<int> hosts(static_cast<std::size_t>(options.hosts));
  std::iota(hosts.begin(), hosts.end(), 0);
  const std::string wrong =
      box::run_job(cluster, {.hosts = hosts,
                             .deadline = std::chrono::hours{2},
                             .body =
                                 [&](Communicator& comm, const box::Gate& gate) {
                                   at::set_num_threads(1);
                                   take_core(comm);
                                   return run_contest(options.contest, ways, comm, gate, *told);
                                 },
                             .at_gate =
                                 [&](int) {
                                   for (const int host : hosts) {
                                     const Status set = cluster.set_rate(host, told->mbit);
                                     if (!set.ok()) throw Error{set};
                                   }
                                 }});
  if (!wrong.empty()) throw Error{Status{Code::InvalidInput, wrong}};
  return print(options, ways, bars, *told);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Training steps over slow links, by how gradients travel", "step_times"};
  sluice::bench::Options options;
  app.add_option("--hosts", options.hosts, "Hosts, a rank on each")->check(CLI::Range(2, 16));
  app.add_option("--model", options.contest.workload.model, "By name, as `sluice train` has them");
  app.add_option("--image", options.contest.workload.image, "Height and width")
      ->check(CLI::Range(8, 512));
  app.add_option("--batch", options.contest.workload.batch, "Images a rank")
      ->check(CLI::Range(1, 4096));
  app.add_option("--ratio", options.contest.ratio, "Of communication to computation")
      ->check(CLI::Range(0.01, 100.0));
  app.add_option(
      "--plain", options.contest.plain,
      "Instead: how many times longer a plain step is to take than over unlimited links");
  app.add_option("--ways", options.ways, "Besides alone and unlimited (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(sluice::bench::slow_ways()));
  app.add_option("--theta", options.theta, "Bytes that close a bucket");
  app.add_option("--rounds", options.contest.rounds, "Of which the median counts")
      ->check(CLI::Range(1, 99));
  app.add_option("--steps", options.contest.steps, "Of a slice")->check(CLI::Range(1, 99));
  app.add_option("--most", options.most,
                 "A bar: WAY:UNIT:TIMES that a step may take; a unit is alone, longer (computation "
                 "or an all-reduce alone), unlimited or bound");
  app.add_option("--output", options.output, "A file for the results as JSON");
  app.footer(
      "Exit status: 0 done, 1 a bar is not met, 2 wrong usage, no such box here or a wrong "
      "result.\n"
      "Example:\n"
      "  step_times --hosts 4 --batch 200 --plain 3.06 --most 'double f16:unlimited:1.11'");
  return sluice::bench::run_program(app, argc, argv, [&] {
    if (options.contest.plain > 0 && !options.ways.empty()) options.ways.emplace_back("plain");
    return sluice::bench::run(options) ? 0 : 1;
  });
}
