// step_times.cc - what a training step costs over slow links, by how its gradients travel.
//
//   step_times --hosts 2 --batch 1100 --ratio 0.45   communication is 0.45 of computation
//   step_times --hosts 4 --batch 200 --plain 3.06    a plain step is 3.06 times an unlimited one
//
// Hosts are network namespaces with shaped links, a rank on each (tests/box/cluster_box.h). The
// rate of the links is set so that the ratio asked for holds on this machine, round by round. All
// ways to train run in the same processes and take turns; after the last turn every rank's weights
// must be the same bits, and those of all f32 ways that are not a step behind the same to rounding.
// Needs root.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "bench/allreduce/median.h"
#include "bench/gradient/training.h"
#include "bench/network/stolen_time.h"
#include "bench/program.h"
#include "bootstrap/cores.h"
#include "sluice/status.h"
#include "tests/box/box_ranks.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kUnlimited = 20'000;     // Mbit/s: no transfer takes longer than a few ms
constexpr double kStreamPart = 0.945;  // of a link's rate that a plain TCP stream has as payload

struct Options {
  int hosts = 2;
  Workload workload;
  double ratio = 0.45;
  double plain = 0;  // instead of ratio
  std::string theta = "4M";
  std::vector<std::string> ways;  // besides alone and unlimited; empty: all
  std::vector<std::string> most;  // bars, as WAY:UNIT:TIMES
  int rounds = 3;
  int steps = 2;
  int fastest = 100;  // Mbit/s
  std::string output;
};

// How one contender's gradients travel, and over which links.
struct Way {
  std::string name;
  std::optional<GradientOptions> options;
  bool unlimited = false;
  bool exact = false;  // f32, and not a step behind: ends where `plain` does
};

// Which of ways_of() that are; `plain` only where it takes part.
constexpr std::size_t kAloneWay = 0;
constexpr std::size_t kUnlimitedWay = 1;
constexpr std::size_t kPlainWay = 2;

std::vector<Way> ways_of(const Options& options) {
  const auto theta = static_cast<std::size_t>(parse_bytes(options.theta).value());
  constexpr std::size_t kEverything = std::size_t{1} << 40U;
  const auto f16 = WireType::F16;
  std::vector<Way> ways = {
      {"alone", std::nullopt, true, false},
      {"unlimited", GradientOptions{.theta = kEverything}, true, true},
      {"plain", GradientOptions{.theta = kEverything}, false, true},
      {"lazy", GradientOptions{.theta = theta}, false, true},
      {"lazy f16", GradientOptions{.theta = theta, .wire = f16}, false, false},
      {"double", GradientOptions{.theta = theta, .double_buffering = true}, false, false},
      {"double f16", GradientOptions{.theta = theta, .wire = f16, .double_buffering = true}, false,
       false},
      {"sparse 85%", GradientOptions{.theta = theta, .sparse = {.sparsity = 0.85}}, false, false},
  };
  const auto asked_for = [&](const std::string& name) {
    return options.ways.empty() ||
           std::find(options.ways.begin(), options.ways.end(), name) != options.ways.end();
  };
  std::erase_if(ways, [&](const Way& way) { return !way.unlimited && !asked_for(way.name); });
  return ways;
}

// The names of those that travel over slow links.
std::vector<std::string> slow_ways() {
  std::vector<std::string> names;
  for (const Way& way : ways_of({})) {
    if (!way.unlimited) names.push_back(way.name);
  }
  return names;
}

// What steps are compared with: computation alone, that or an all-reduce alone if it is longer, a
// step over unlimited links, and the earliest end of sending what is ready at the link's rate.
constexpr std::array<std::string_view, 4> kUnits{"alone", "longer", "unlimited", "bound"};
constexpr std::size_t kUnlimitedUnit = 2;

// Of a way: a median of all rounds, as are its ratios, each to the same round's.
struct StepTime {
  double s = 0;
  std::array<double, kUnits.size()> of{};
};

// So many units a step of a way may take.
struct Bar {
  std::size_t way = 0;
  std::size_t unit = 0;
  double times = 0;
};

std::vector<Bar> bars_of(const Options& options) {
  const std::vector<Way> ways = ways_of(options);
  std::vector<Bar> bars;
  for (const std::string& text : options.most) {
    const std::size_t first = text.find(':');
    const std::size_t second = text.find(':', first + 1);
    const auto way = std::find_if(ways.begin(), ways.end(), [&](const Way& each) {
      return each.name == text.substr(0, first);
    });
    const auto unit =
        std::find(kUnits.begin(), kUnits.end(), text.substr(first + 1, second - first - 1));
    const double times = second == std::string::npos ? 0 : std::atof(text.c_str() + second + 1);
    if (way == ways.end() || unit == kUnits.end() || !(times > 0))
      throw Error{Status{Code::InvalidArgument,
                         fmt::format("--most {}: not WAY:UNIT:TIMES of a way that takes part and "
                                     "one of {}",
                                     text, fmt::join(kUnits, ", "))}};
    bars.push_back({.way = static_cast<std::size_t>(way - ways.begin()),
                    .unit = static_cast<std::size_t>(unit - kUnits.begin()),
                    .times = times});
  }
  return bars;
}

// What rank 0 tells the process that owns the links, and what it found out in the end.
struct Told {
  int mbit = kUnlimited;
  double transfer_s = 0;
  double transfer_of_alone = 0;
  double bound_s = 0;
  double strict_bound_s = 0;
  double most_stolen = 0;
  double gradient_bytes = 0;
  double limited_mbit = 0;
  std::array<StepTime, 16> steps{};
};

Told* shared_told() {
  void* const page =
      mmap(nullptr, sizeof(Told), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) throw std::runtime_error{"no memory to share"};
  return new (page) Told{};
}

void note(const Communicator& comm, const std::string& line) {
  if (comm.rank() == 0) fmt::print(stderr, "{}\n", line);
}

class Everyone {
 public:
  explicit Everyone(Communicator& comm) : comm_{comm} {}
  double largest(double value) {
    comm_.all_reduce(&value, 1, {.type = DataType::F64, .op = ReduceOp::Max}).wait();
    return value;
  }

 private:
  Communicator& comm_;
};

class Contest {
 public:
  Contest(const Options& options, Communicator& comm, const box::Gate& gate, Told& told)
      : options_{options}, comm_{comm}, gate_{gate}, told_{told}, ways_{ways_of(options)} {
    for (const Way& way : ways_)
      trainings_.push_back(std::make_unique<Training>(options.workload, comm, way.options));
    told_.gradient_bytes = trainings_[0]->gradient_bytes();
  }

  std::string run() {
    set_rate(kUnlimited);
    for (const auto& training : trainings_) {  // lays the pools out, warms everything up
      training->step();
      training->flush();
    }
    if (options_.plain > 0) find_besides();
    for (int round = 0; round < options_.rounds; ++round) {
      note(comm_, fmt::format("round {} of {}", round + 1, options_.rounds));
      if (const std::string wrong = take_round(); !wrong.empty()) return wrong;
    }
    if (comm_.rank() == 0) conclude();
    return check();
  }

 private:
  void set_rate(int mbit) {
    if (comm_.rank() == 0) told_.mbit = mbit;
    gate_.pass();
  }

  double bits_to_send() const {
    const double n = comm_.size();
    return 2 * (n - 1) / n * told_.gradient_bytes * 8;
  }
  int rate_for(double seconds) const {
    return static_cast<int>(std::lround(bits_to_send() / kStreamPart / seconds / 1e6));
  }

  // What a plain step takes besides the transfer, of an unlimited one, by trial. The two take
  // turns, as they will in the rounds: a way that runs on its own runs faster.
  void find_besides() {
    constexpr int kTrials = 2;
    for (int trial = 0; trial < kTrials; ++trial) {
      set_rate(kUnlimited);
      const double unlimited = slice(kUnlimitedWay, true);
      const int mbit = std::clamp(rate_for((options_.plain - 1) * unlimited), 1, options_.fastest);
      set_rate(mbit);
      besides_.push_back(besides(slice(kPlainWay, true), mbit, unlimited));
    }
  }
  double besides(double plain, int mbit, double unlimited) const {
    return (plain - bits_to_send() / kStreamPart / (mbit * 1e6)) / unlimited;
  }

  // Every way once. The speed of a machine changes while one waits, so each round has the rate that
  // its own computation asks for, and is compared with itself alone.
  std::string take_round() {
    std::vector<double> seconds(ways_.size());
    const auto take = [&](std::size_t way) {
      const double taken = slice(way, true);
      note(comm_, fmt::format("  {} {}", ways_[way].name, format_seconds(taken)));
      return taken;
    };
    set_rate(kUnlimited);
    seconds[kAloneWay] = take(kAloneWay);
    const double before = take(kUnlimitedWay);
    const int mbit = options_.plain > 0 ? rate_for((options_.plain - median(besides_)) * before)
                                        : rate_for(options_.ratio * seconds[kAloneWay]);
    if (mbit > options_.fastest) {
      constexpr double kMargin = 1.2;  // the next run may find the machine faster still
      return fmt::format("links of {} Mbit/s would be needed, beyond {}: take a batch of {:.0f}",
                         mbit, options_.fastest,
                         kMargin * options_.workload.batch * mbit / options_.fastest);
    }
    if (mbit < 1) return "links of less than 1 Mbit/s would be needed: take a smaller batch";
    note(comm_, fmt::format("  links get {} Mbit/s", mbit));
    set_rate(mbit);
    for (std::size_t way = kUnlimitedWay + 1; way < ways_.size(); ++way) seconds[way] = take(way);
    rounds_.push_back({.mbit = mbit,
                       .seconds = {},
                       .transfer_s = transfer(),
                       .bound_s = bound(mbit * 1e6 / 8 * kStreamPart),
                       .strict_bound_s = bound(mbit * 1e6 / 8)});
    set_rate(kUnlimited);
    seconds[kUnlimitedWay] = (before + take(kUnlimitedWay)) / 2;
    if (options_.plain > 0)
      besides_.push_back(besides(seconds[kPlainWay], mbit, seconds[kUnlimitedWay]));
    rounds_.back().seconds = std::move(seconds);
    return "";
  }

  void conclude() {
    const auto over_rounds = [&](auto value) {
      std::vector<double> values;
      for (const Round& round : rounds_) values.push_back(value(round));
      return median(values);
    };
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      StepTime& step = told_.steps[way];
      step.s = over_rounds([&](const Round& round) { return round.seconds[way]; });
      for (std::size_t unit = 0; unit < kUnits.size(); ++unit) {
        step.of[unit] = over_rounds(
            [&](const Round& round) { return round.seconds[way] / round.units()[unit]; });
      }
    }
    told_.limited_mbit = over_rounds([](const Round& round) { return round.mbit; });
    told_.transfer_s = over_rounds([](const Round& round) { return round.transfer_s; });
    told_.transfer_of_alone =
        over_rounds([](const Round& round) { return round.transfer_s / round.seconds[kAloneWay]; });
    told_.bound_s = over_rounds([](const Round& round) { return round.bound_s; });
    told_.strict_bound_s = over_rounds([](const Round& round) { return round.strict_bound_s; });
  }

  // Seconds of a step at the slowest rank, after one that nobody times.
  double slice(std::size_t way, bool watched) {
    constexpr double kMostStolen = 0.02;
    constexpr int kAttempts = 3;
    double best = 0;
    double least = 1;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      Training& training = *trainings_[way];
      comm_.barrier();
      training.step();
      const StolenTime stolen;
      const auto begin = Clock::now();
      for (int i = 0; i < options_.steps; ++i) training.step();
      const double own = std::chrono::duration<double>(Clock::now() - begin).count();
      training.flush();
      Everyone all{comm_};
      const double seconds = all.largest(own) / options_.steps;
      const double share = all.largest(stolen.share());
      taken_[way] += options_.steps + 1;
      if (share < least) {
        least = share;
        best = seconds;
      }
      if (!watched || share <= kMostStolen) break;
    }
    if (watched && comm_.rank() == 0) told_.most_stolen = std::max(told_.most_stolen, least);
    return best;
  }

  // An all-reduce of all gradients, with nothing beside it.
  double transfer() {
    const auto count = static_cast<std::size_t>(told_.gradient_bytes) / sizeof(float);
    const Pool pool = comm_.allocate(count * sizeof(float));
    comm_.barrier();
    const auto begin = Clock::now();
    comm_.all_reduce(pool.data(), count).wait();
    return Everyone{comm_}.largest(std::chrono::duration<double>(Clock::now() - begin).count());
  }

  double bound(double bytes_per_s) {
    comm_.barrier();
    double update_s = 0;
    std::vector<ReadyGradient> gradients = trainings_[0]->ready_times(update_s);
    const double n = comm_.size();
    for (ReadyGradient& gradient : gradients) gradient.bytes *= 2 * (n - 1) / n;
    return Everyone{comm_}.largest(earliest_end(gradients, bytes_per_s) + update_s);
  }

  // Every way's weights are the same bits at all ranks, and where two did the same steps the same.
  std::string check() {
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (!ways_[way].options) continue;
      std::array<std::int64_t, 2> hash{
          static_cast<std::int64_t>(trainings_[way]->weights_hash() >> 1U)};
      hash[1] = -hash[0];
      comm_.all_reduce(hash.data(), 2, {.type = DataType::I64, .op = ReduceOp::Max}).wait();
      if (hash[0] != -hash[1])
        return fmt::format("{}: ranks have different weights", ways_[way].name);
    }
    std::size_t most = 0;  // slices that were disturbed have been repeated, so ways differ
    for (const auto& [way, taken] : taken_) {
      if (ways_[way].exact) most = std::max(most, taken);
    }
    std::optional<std::size_t> first;
    for (std::size_t way = 0; way < ways_.size(); ++way) {
      if (!ways_[way].exact) continue;
      for (; taken_[way] < most; ++taken_[way]) trainings_[way]->step();
      if (!first) first = way;
      constexpr double kTolerance = 1e-4;  // relative: sums are taken in another order
      const double distance = trainings_[way]->distance_to(*trainings_[*first]);
      if (distance > kTolerance * trainings_[way]->weights_norm())
        return fmt::format("{} ends {} away from {}", ways_[way].name, distance,
                           ways_[*first].name);
    }
    return "";
  }

  struct Round {
    int mbit = 0;
    std::vector<double> seconds;  // by way
    double transfer_s = 0;
    double bound_s = 0;
    double strict_bound_s = 0;

    std::array<double, kUnits.size()> units() const {
      const double alone = seconds[kAloneWay];
      return {alone, std::max(alone, transfer_s), seconds[kUnlimitedWay], strict_bound_s};
    }
  };

  const Options& options_;
  Communicator& comm_;
  const box::Gate& gate_;
  Told& told_;
  std::vector<double> besides_;  // trial by trial and round by round
  std::vector<Round> rounds_;
  std::vector<Way> ways_;
  std::vector<std::unique_ptr<Training>> trainings_;
  std::map<std::size_t, std::size_t> taken_;
};

// Whether all bars are met.
bool print(const Options& options, const std::vector<Bar>& bars, const Told& told) {
  const std::vector<Way> ways = ways_of(options);
  fmt::print("{}, {} images of {}x{} a rank, {} hosts of 1 rank, links of {:.0f} Mbit/s\n",
             options.workload.model, options.workload.batch, options.workload.image,
             options.workload.image, options.hosts, told.limited_mbit);
  fmt::print("computation {}, all-reduce of {} alone {} ({:.2f} of it)\n",
             format_seconds(told.steps[kAloneWay].s), format_bytes(told.gradient_bytes),
             format_seconds(told.transfer_s), told.transfer_of_alone);
  fmt::print("sending what is ready at once, at the link's rate: {}; at a plain stream's: {}\n",
             format_seconds(told.strict_bound_s), format_seconds(told.bound_s));
  fmt::print("  {:<18} {:>10}", "", "a step");
  for (const std::string_view unit : kUnits) fmt::print(" {:>12}", fmt::format("x {}", unit));
  fmt::print("\n");
  nlohmann::ordered_json document;
  for (std::size_t way = 0; way < ways.size(); ++way) {
    const StepTime& step = told.steps[way];
    fmt::print("  {:<18} {:>10} {:>12.3f}\n", ways[way].name, format_seconds(step.s),
               fmt::join(step.of, " "));
    document["step_s"][ways[way].name] = step.s;
    document["of_unlimited"][ways[way].name] = step.of[kUnlimitedUnit];
  }
  fmt::print(
      "medians of {} rounds of slices of {} steps, ratios within a round; others had up to {:.1f}% "
      "of the cores\n",
      options.rounds, options.steps, 100 * told.most_stolen);
  bool all_met = true;
  for (const Bar& bar : bars) {
    const double times = told.steps[bar.way].of[bar.unit];
    const bool met = times <= bar.times;
    all_met = all_met && met;
    fmt::print("{}: {:.3f} x {}; the bar is {:.2f}: {}\n", ways[bar.way].name, times,
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
  const std::vector<int> cores = usable_cores();
  (void)pin_to(share_of_cores(cores, comm.size(), comm.rank()));  // else it is slower, not wrong
}

// Whether all bars are met.
bool run(const Options& options) {
  const std::vector<Bar> bars = bars_of(options);
  // Ranks that join choose algorithms by what the links give then: slow ones, as in the rounds.
  box::ClusterBox cluster =
      box::ClusterBox::make({.hosts = options.hosts, .mbit_per_s = options.fastest}).value();
  Told* const told = shared_told();
  std::vector<int> hosts(static_cast<std::size_t>(options.hosts));
  for (int host = 0; host < options.hosts; ++host) hosts[static_cast<std::size_t>(host)] = host;
  const std::string wrong =
      box::run_job(cluster, {.hosts = hosts,
                             .deadline = std::chrono::hours{2},
                             .body =
                                 [&](Communicator& comm, const box::Gate& gate) {
                                   at::set_num_threads(1);
                                   take_core(comm);
                                   return Contest{options, comm, gate, *told}.run();
                                 },
                             .at_gate =
                                 [&](int) {
                                   for (const int host : hosts) {
                                     const Status set = cluster.set_rate(host, told->mbit);
                                     if (!set.ok()) throw Error{set};
                                   }
                                 }});
  if (!wrong.empty()) throw Error{Status{Code::InvalidInput, wrong}};
  return print(options, bars, *told);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  CLI::App app{"Training steps over slow links, by how gradients travel", "step_times"};
  sluice::bench::Options options;
  app.add_option("--hosts", options.hosts, "Hosts, a rank on each")->check(CLI::Range(2, 16));
  app.add_option("--model", options.workload.model, "By name, as `sluice train` has them");
  app.add_option("--image", options.workload.image, "Height and width")->check(CLI::Range(8, 512));
  app.add_option("--batch", options.workload.batch, "Images a rank")->check(CLI::Range(1, 4096));
  app.add_option("--ratio", options.ratio, "Of communication to computation")
      ->check(CLI::Range(0.01, 100.0));
  app.add_option(
      "--plain", options.plain,
      "Instead: how many times longer a plain step is to take than over unlimited links");
  app.add_option("--ways", options.ways, "Besides alone and unlimited (default: all)")
      ->delimiter(',')
      ->check(CLI::IsMember(sluice::bench::slow_ways()));
  app.add_option("--theta", options.theta, "Bytes that close a bucket");
  app.add_option("--rounds", options.rounds, "Of which the median counts")
      ->check(CLI::Range(1, 99));
  app.add_option("--steps", options.steps, "Of a slice")->check(CLI::Range(1, 99));
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
    if (options.plain > 0 && !options.ways.empty()) options.ways.emplace_back("plain");
    return sluice::bench::run(options) ? 0 : 1;
  });
}
