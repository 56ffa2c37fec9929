// step_times.cc - the time of a training step over slow links, for each way to send gradients.
//
//   step_times --hosts 2 --batch 1100 --ratio 0.45   communication takes 0.45 times the computation
//   step_times --hosts 4 --batch 200 --plain 3.06    a plain step takes 3.06 times an unlimited one
//
// Hosts are network namespaces with shaped links and one rank each (tests/box/cluster_box.h). All
// ways run in the same processes and take turns (interleaved.h). Needs root.
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "base/format.h"
#include "base/text.h"
#include "bench/gradient/interleaved.h"
#include "bench/gradient/ways.h"
#include "bench/program.h"
#include "bootstrap/host.h"
#include "sluice/status.h"
#include "tests/box/box_ranks.h"

namespace sluice::bench {
namespace {

struct Options {
  int hosts = 2;
  InterleavedOptions training;
  std::string theta = "4M";
  std::vector<std::string> ways;  // in addition to alone and unlimited; empty: all
  std::vector<std::string> most;  // limits WAY:UNIT:TIMES
  std::string output;
};

SharedState* map_shared_state() {
  void* const page =
      mmap(nullptr, sizeof(SharedState), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error{"cannot map shared memory"};
  return new (page) SharedState{};
}

// Returns whether all limits are met.
bool print(const Options& options, const std::vector<Way>& ways,
           const std::vector<StepLimit>& limits, const SharedState& shared) {
  const Workload& workload = options.training.workload;
  base::print(
      "{}, {} images of {}x{} per rank, {} hosts with 1 rank each, links of {:.0f} Mbit/s\n",
      workload.model, workload.batch, workload.image, workload.image, options.hosts,
      shared.limited_mbit);
  base::print("computation {}, all-reduce of {} alone {} ({:.2f} times the computation)\n",
              base::format_seconds(shared.steps[kAloneWay].s),
              base::format_bytes(shared.gradient_bytes), base::format_seconds(shared.transfer_s),
              shared.transfer_of_alone);
  base::print("lower bound of a step at the link rate: {}; at the rate of a TCP stream: {}\n",
              base::format_seconds(shared.strict_bound_s), base::format_seconds(shared.bound_s));
  base::print("  {:<18} {:>10}", "", "step");
  for (const std::string_view unit : kUnits) base::print(" {:>12}", base::format("x {}", unit));
  base::print("\n");
  nlohmann::ordered_json document;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const StepTime& step = shared.steps[way];
    base::print("  {:<18} {:>10}", ways[way].name, base::format_seconds(step.s));
    for (const double ratio : step.ratios) base::print(" {:>12.3f}", ratio);
    base::print("\n");
    document["step_s"][ways[way].name] = step.s;
    document["of_unlimited"][ways[way].name] = step.ratios[kUnlimitedUnit];
  }
  base::print(
      "medians of {} rounds of slices of {} steps, ratios within a round; up to {:.1f}% of the "
      "processor time was stolen\n",
      options.training.rounds, options.training.steps, 100 * shared.most_stolen);
  bool all_met = true;
  for (const StepLimit& limit : limits) {
    const double times = shared.steps[limit.way].ratios[limit.unit];
    const bool met = times <= limit.times;
    all_met = all_met && met;
    base::print("{}: {:.3f} x {}, limit {:.2f}: {}\n", ways[limit.way].name, times,
                kUnits[limit.unit], limit.times, met ? "met" : "not met");
  }
  document["mbit"] = shared.limited_mbit;
  document["transfer_s"] = shared.transfer_s;
  document["bound_s"] = shared.strict_bound_s;
  document["stream_bound_s"] = shared.bound_s;
  if (!options.output.empty()) std::ofstream{options.output} << document.dump(2) << "\n";
  return all_met;
}

// Pins each rank to fixed cores. Otherwise the system could put three ranks on one core, and the
// others would wait for them.
void take_core(const Communicator& comm) {
  const std::vector<int> cores = bootstrap::usable_cores();
  (void)bootstrap::pin_to(bootstrap::share_of_cores(
      cores, comm.size(), comm.rank()));  // unpinned is slower, but correct
}

// Returns whether all limits are met.
bool run(const Options& options) {
  const auto theta = static_cast<std::size_t>(base::parse_bytes(options.theta).value());
  const std::vector<Way> ways = ways_of(theta, options.ways);
  const std::vector<StepLimit> limits = limits_of(options.most, ways);
  // The ranks measure the links when they join, so these are as slow as in the rounds.
  box::ClusterBox cluster =
      box::ClusterBox::make({.hosts = options.hosts, .mbit_per_s = options.training.fastest})
          .value();
  SharedState* const shared = map_shared_state();
  std::vector<int> hosts(static_cast<std::size_t>(options.hosts));
  std::iota(hosts.begin(), hosts.end(), 0);
  const std::string wrong = box::run_job(
      cluster, {.hosts = hosts,
                .deadline = std::chrono::hours{2},
                .body =
                    [&](Communicator& comm, const box::Gate& gate) {
                      at::set_num_threads(1);
                      take_core(comm);
                      return run_interleaved(options.training, ways, comm, gate, *shared);
                    },
                .at_gate =
                    [&](int) {
                      for (const int host : hosts) {
                        const Status set = cluster.set_rate(host, shared->mbit);
                        if (!set.ok()) throw Error{set};
                      }
                    }});
  if (!wrong.empty()) throw Error{Status{Code::InvalidInput, wrong}};
  return print(options, ways, limits, *shared);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Times training steps over slow links, for each way to send gradients",
               "step_times"};
  sluice::bench::Options options;
  app.add_option("--hosts", options.hosts, "Number of hosts, with one rank each")
      ->check(CLI::Range(2, 16));
  app.add_option("--model", options.training.workload.model, "Name of a model, as in sluice train");
  app.add_option("--image", options.training.workload.image, "Height and width of the images")
      ->check(CLI::Range(8, 512));
  app.add_option("--batch", options.training.workload.batch, "Images per rank and step")
      ->check(CLI::Range(1, 4096));
  app.add_option("--ratio", options.training.ratio, "Ratio of communication to computation")
      ->check(CLI::Range(0.01, 100.0));
  app.add_option("--plain", options.training.plain,
                 "Instead of --ratio: time of a plain step / a step over unlimited links");
  app.add_option("--ways", options.ways,
                 "Ways to measure in addition to alone and unlimited (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(sluice::bench::slow_ways()));
  app.add_option("--theta", options.theta, "Size at which a bucket is closed");
  app.add_option("--rounds", options.training.rounds, "Rounds; the median is shown")
      ->check(CLI::Range(1, 99));
  app.add_option("--steps", options.training.steps, "Training steps per slice")
      ->check(CLI::Range(1, 99));
  app.add_option("--most", options.most,
                 "Limit WAY:UNIT:TIMES: a step of WAY may take at most TIMES the UNIT, which is\n"
                 "alone, longer (of computation and all-reduce alone), unlimited or bound");
  app.add_option("--output", options.output, "Write the results to this file as JSON");
  app.footer(
      "Exit status: 0 done, 1 a limit is not met, 2 wrong usage, a wrong result, or no network\n"
      "namespaces on this machine.\n"
      "Example:\n"
      "  step_times --hosts 4 --batch 200 --plain 3.06 --most 'double f16:unlimited:1.11'");
  return sluice::bench::run_program(app, argc, argv, [&] {
    if (options.training.plain > 0 && !options.ways.empty()) options.ways.emplace_back("plain");
    return sluice::bench::run(options) ? 0 : 1;
  });
}
