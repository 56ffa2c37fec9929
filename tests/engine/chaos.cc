#include "tests/engine/chaos.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <random>
#include <thread>

#include "base/format.h"
#include "sluice/algorithms.h"

namespace sluice::engine::chaos {
namespace {

using namespace std::chrono_literals;

constexpr std::array kFaults{"kill",       "stop",      "crash",           "cut link",
                             "vanish",     "slow link", "leave",           "other size",
                             "other type", "other op",  "other collective"};
constexpr int kSlowIterations = 20;

bool is_external(Fault fault) { return fault < Fault::Leave; }
bool is_mismatch(Fault fault) { return fault >= Fault::OtherSize; }
bool hits_host(Fault fault) { return fault == Fault::CutLink || fault == Fault::Vanish; }

std::int64_t value(Rank rank, int iteration, std::size_t element) {
  return (rank + 1) * 1'000'000'007LL + iteration * 7919LL + static_cast<std::int64_t>(element);
}

// Runs collectives until one fails. Returns this rank's report: "error " and the message, "left"
// for a victim of Leave, "went on" after all iterations, else a description of a wrong result.
std::string run_rank(const Scenario& scenario, Rank me, int ready) {
  Communicator comm = Communicator::from_env(30s);
  comm.set_deadline(kDeadline);
  // One element more than needed, for the fault OtherSize.
  const Pool pool = comm.allocate((scenario.count + 1) * sizeof(std::int64_t));
  std::vector<std::int64_t> foreign(scenario.count + 1);
  const std::span<std::int64_t> data = scenario.pooled ? pool.as<std::int64_t>() : foreign;
  if (write(ready, "", 1) != 1) return "cannot report that it is ready";
  const int last = scenario.fault == Fault::SlowLink ? kSlowIterations : 1 << 30;
  for (int i = 0; i < last; ++i) {
    const bool now = me == scenario.victim && i == scenario.iteration;
    if (now && scenario.fault == Fault::Leave) return "left";
    CollectiveOptions options{.algorithm = scenario.algorithm};
    std::size_t count = scenario.count;
    if (now && scenario.fault == Fault::OtherSize) ++count;
    const bool other_type = now && scenario.fault == Fault::OtherType;
    if (now && scenario.fault == Fault::OtherOp) options.op = ReduceOp::Max;
    for (std::size_t e = 0; e < scenario.count; ++e) data[e] = value(me, i, e);
    try {
      if (now && scenario.fault == Fault::OtherCollective) {
        comm.broadcast(data.first(count)).wait();
      } else {
        comm.all_reduce({data.data(), count, other_type ? DataType::F64 : DataType::I64}, options)
            .wait();
      }
    } catch (const Error& error) {
      try {
        comm.barrier();
      } catch (const Error& again) {
        if (std::string_view{again.what()} == error.what())
          return base::format("error {}", error.what());
        return base::format("poisoned with another cause: {} / {}", error.what(), again.what());
      }
      return base::format("not poisoned after {}", error.what());
    }
    // A broadcast's root may be done before a peer can report the mismatch.
    if (now && scenario.fault == Fault::OtherCollective) continue;
    for (std::size_t e = 0; e < scenario.count; ++e) {
      std::int64_t sum = 0;
      for (Rank rank = 0; rank < comm.size(); ++rank) sum += value(rank, i, e);
      if (data[e] != sum)
        return base::format("iteration {}, element {}: {} instead of {}", i, e, data[e], sum);
    }
  }
  return "went on";
}

struct RankProcess {
  pid_t pid = 0;
  int pipe_end = -1;
  std::string report;
  bool ended = false;
  Clock::time_point when;
};

RankProcess start_rank(const Scenario& scenario, Rank me, int ready, const HostControl& control) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  const pid_t parent = getpid();
  const pid_t pid = control.start(scenario.host(me), [&] {
    constexpr unsigned kLongest = 90;  // seconds; ends the rank when the parent has failed
    alarm(kLongest);
    const rlimit none{0, 0};
    setrlimit(RLIMIT_CORE, &none);
    const auto set = [](const std::string& name, const std::string& value) {
      setenv(name.c_str(), value.c_str(), 1);
    };
    set("SLUICE_RANK", std::to_string(me));
    set("SLUICE_RANKS", std::to_string(scenario.ranks));
    set("SLUICE_JOB", base::format("chaos-{}-{}", parent, scenario.seed));
    if (const std::string master = control.address(scenario.host(0)); !master.empty()) {
      const auto here = [&](Rank ranks) {
        return std::count(scenario.hosts.begin(), scenario.hosts.begin() + ranks,
                          scenario.host(me));
      };
      set("SLUICE_LOCAL_RANK", std::to_string(here(me)));
      set("SLUICE_LOCAL_RANKS", std::to_string(here(scenario.ranks)));
      set("MASTER_ADDR", master);
      set("SLUICE_PORT", std::to_string(20'000 + scenario.seed % 10'000));
    }
    for (const auto& [name, value] : control.environment) set(name, value);
    std::string report;
    try {
      report = run_rank(scenario, me, ready);
    } catch (const std::exception& error) {
      report = base::format("threw {}", error.what());
    }
    (void)!write(ends[1], report.data(), report.size());
    return 0;
  });
  close(ends[1]);
  return {pid, ends[0], "", false, {}};
}

// Reads the ranks' reports until all ranks but a stopped one have ended, or until the deadline.
void collect_reports(std::vector<RankProcess>& ranks, const Scenario& scenario,
                     Clock::time_point deadline) {
  const auto is_open = [&](std::size_t i) {
    const bool is_stopped =
        scenario.fault == Fault::Stop && static_cast<Rank>(i) == scenario.victim;
    return !ranks[i].ended && !is_stopped;
  };
  while (Clock::now() < deadline) {
    std::vector<pollfd> polled;
    std::vector<std::size_t> polled_ranks;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (!is_open(i)) continue;
      polled.push_back({ranks[i].pipe_end, POLLIN, 0});
      polled_ranks.push_back(i);
    }
    if (polled.empty()) return;
    poll(polled.data(), polled.size(), 20);
    for (std::size_t p = 0; p < polled.size(); ++p) {
      if (polled[p].revents == 0) continue;
      std::array<char, 4096> text{};
      const ssize_t bytes = read(polled[p].fd, text.data(), text.size());
      RankProcess& rank = ranks[polled_ranks[p]];
      if (bytes > 0) {
        rank.report.append(text.data(), static_cast<std::size_t>(bytes));
      } else {
        rank.ended = true;
        rank.when = Clock::now();
      }
    }
  }
}

// Whether a survivor's report blames that rank, for a cause that it found itself or that a peer
// reported to it.
bool blames(const std::string& report, Rank own, Rank culprit, const Scenario& scenario) {
  const auto names = [&](const std::string& part) {
    return report.find(part) != std::string::npos;
  };
  if (names(own == culprit ? "because of this rank" : base::format("because of rank {}", culprit)))
    return true;
  if (is_mismatch(scenario.fault)) {
    return names(base::format("rank {}: it calls", own)) &&
           (own == culprit || names(base::format("but rank {} calls", culprit)));
  }
  const bool only_time = scenario.fault == Fault::Stop || hits_host(scenario.fault);
  if (only_time && (names(base::format("rank {} is stopped", culprit)) ||
                    names(base::format("rank {} last reported", culprit))))
    return true;
  return scenario.fault != Fault::Stop && names(base::format("rank {} is lost", culprit));
}

// Returns "" when the rank has ended as it must, else the error.
std::string check_rank(Rank rank, const RankProcess& process, const Scenario& scenario,
                       Clock::time_point fault_at) {
  const bool on_lost_host =
      hits_host(scenario.fault) && scenario.host(rank) == scenario.host(scenario.victim);
  if (scenario.fault == Fault::Vanish && on_lost_host) return "";
  if (rank == scenario.victim && !is_mismatch(scenario.fault) && !hits_host(scenario.fault) &&
      scenario.fault != Fault::SlowLink)
    return "";
  if (!process.ended) return base::format("rank {} had not ended in time", rank);
  if (scenario.fault == Fault::SlowLink)
    return process.report == "went on" ? ""
                                       : base::format("rank {} reported: {}", rank, process.report);
  if (!process.report.starts_with("error "))
    return base::format("rank {} reported: {}", rank, process.report);
  if (process.when - fault_at > kDeadline + kGrace) {
    return base::format("rank {} was late by {} ms", rank,
                        (process.when - fault_at - kDeadline) / 1ms);
  }
  if (on_lost_host) return "";  // this rank cannot know which link is cut
  bool right = false;
  for (Rank culprit = 0; culprit < scenario.ranks; ++culprit) {
    const bool may = hits_host(scenario.fault)
                         ? scenario.host(culprit) == scenario.host(scenario.victim)
                         : culprit == scenario.victim;
    right = right || (may && blames(process.report, rank, culprit, scenario));
  }
  const bool says_where =
      process.report.find(" #") != std::string::npos &&
      (is_mismatch(scenario.fault) || process.report.find("step ") != std::string::npos);
  return right && says_where
             ? ""
             : base::format("rank {} blames another rank: {}", rank, process.report);
}

void inject(const Scenario& scenario, const std::vector<RankProcess>& ranks,
            const HostControl& control) {
  const int host = scenario.host(scenario.victim);
  const pid_t victim = ranks[static_cast<std::size_t>(scenario.victim)].pid;
  if (scenario.fault == Fault::Kill) kill(victim, SIGKILL);
  if (scenario.fault == Fault::Stop) kill(victim, SIGSTOP);
  // Not SIGSEGV: a sanitizer would catch it and write a report before the process ends.
  if (scenario.fault == Fault::Crash) kill(victim, SIGABRT);
  if (scenario.fault == Fault::SlowLink) control.slow(host);
  if (hits_host(scenario.fault)) control.cut(host);
  for (Rank rank = 0; scenario.fault == Fault::Vanish && rank < scenario.ranks; ++rank) {
    if (scenario.host(rank) == host) kill(ranks[static_cast<std::size_t>(rank)].pid, SIGKILL);
  }
}

std::uint64_t number_from(const char* variable, std::uint64_t fallback) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

}  // namespace

std::string Scenario::describe() const {
  return base::format(
      "seed {}: {} of {} ranks on hosts {}, {} i64 {} by {}: {} rank {}", seed, "all_reduce", ranks,
      base::join(hosts, " "), count, pooled ? "in pools" : "in foreign memory",
      algorithm.empty() ? "choice" : algorithm, kFaults[static_cast<std::size_t>(fault)], victim);
}

Scenario scenario_of(std::uint64_t seed, int hosts) {
  std::mt19937_64 random{seed};
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Scenario scenario{.seed = seed};
  scenario.ranks = static_cast<int>(2 + below(7));
  // One scenario in four runs what the engine chooses.
  if (below(4) != 0) {
    std::vector<std::string_view> names;
    for (const Algorithm& algorithm : built_in_algorithms()) {
      if (algorithm.supports(Collective::AllReduce)) names.push_back(algorithm.name);
    }
    scenario.algorithm = names[below(names.size())];
  }
  // Buffers have up to 4 MiB; short ones are as likely as long ones. No buffer is empty, because
  // then no rank would notice a missing peer.
  scenario.count = 1 + below(std::uint64_t{1} << (below(3) == 0 ? 19 : below(19)));
  scenario.pooled = below(2) == 0;
  do {
    scenario.fault = static_cast<Fault>(below(kFaults.size()));
  } while (hosts == 1 && (hits_host(scenario.fault) || scenario.fault == Fault::SlowLink));
  scenario.victim = static_cast<Rank>(below(static_cast<std::uint64_t>(scenario.ranks)));
  scenario.moment = std::chrono::microseconds{below(std::uint64_t{1} << below(15))};
  scenario.iteration = static_cast<int>(below(20));
  do {  // the ranks must be on at least two hosts, if there are several
    scenario.hosts.clear();
    for (int rank = 0; rank < scenario.ranks; ++rank)
      scenario.hosts.push_back(static_cast<int>(below(static_cast<std::uint64_t>(hosts))));
  } while (hosts > 1 && std::count(scenario.hosts.begin(), scenario.hosts.end(),
                                   scenario.hosts[0]) == scenario.ranks);
  constexpr std::size_t kMostOnSlowLink = 4000;
  if (scenario.fault == Fault::SlowLink) scenario.count = std::min(scenario.count, kMostOnSlowLink);
  return scenario;
}

std::string run(const Scenario& scenario, const HostControl& control) {
  std::array<int, 2> ready{};
  if (pipe2(ready.data(), O_CLOEXEC) != 0) return "no pipe";
  std::vector<RankProcess> ranks;
  for (Rank rank = 0; rank < scenario.ranks; ++rank)
    ranks.push_back(start_rank(scenario, rank, ready[1], control));
  close(ready[1]);
  std::string wrong;
  for (int joined = 0; joined < scenario.ranks && wrong.empty();) {
    pollfd polled{ready[0], POLLIN, 0};
    std::array<char, 16> bytes{};
    constexpr int kJoinMs = 40'000;
    const ssize_t got =
        poll(&polled, 1, kJoinMs) > 0 ? read(ready[0], bytes.data(), bytes.size()) : 0;
    if (got <= 0) wrong = "not all ranks joined";
    joined += static_cast<int>(std::max<ssize_t>(got, 0));
  }
  close(ready[0]);
  if (wrong.empty()) {
    std::this_thread::sleep_for(scenario.moment);
    inject(scenario, ranks, control);
    auto fault_at = Clock::now();
    // A fault that the victim causes comes later, in its iteration, and ranks share the cores.
    const bool sudden = is_external(scenario.fault) && scenario.fault != Fault::SlowLink;
    const auto slack = sudden ? 2s : 20s;
    collect_reports(ranks, scenario, fault_at + kDeadline + kGrace + slack);
    if (!sudden) fault_at += slack;
    for (Rank rank = 0; rank < scenario.ranks && wrong.empty(); ++rank)
      wrong = check_rank(rank, ranks[static_cast<std::size_t>(rank)], scenario, fault_at);
  }
  if (!wrong.empty()) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank)
      wrong += base::format("\n    rank {}: {}", rank, ranks[rank].report);
  }
  for (const RankProcess& rank : ranks) {
    kill(rank.pid, SIGKILL);
    int status = 0;
    waitpid(rank.pid, &status, 0);
    close(rank.pipe_end);
  }
  control.mend(scenario.host(scenario.victim));
  return wrong;
}

void run_many(std::uint64_t runs, int hosts, const HostControl& control) {
  runs = number_from("SLUICE_CHAOS_RUNS", runs);
  const std::uint64_t seed = number_from("SLUICE_CHAOS_SEED", std::random_device{}());
  base::print("{} runs from seed {}\n", runs, seed);
  std::uint64_t wrong_runs = 0;
  for (std::uint64_t i = 0; i < runs && wrong_runs < 5; ++i) {
    const Scenario scenario = scenario_of(seed + i, hosts);
    const std::string wrong = run(scenario, control);
    if (wrong.empty()) continue;
    ++wrong_runs;
    ADD_FAILURE() << scenario.describe() << "\n  " << wrong
                  << "\n  to repeat: SLUICE_CHAOS_SEED=" << scenario.seed << " SLUICE_CHAOS_RUNS=1";
  }
}

}  // namespace sluice::engine::chaos
