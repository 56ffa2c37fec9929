// Faults at random moments: a rank is killed, stopped, crashes, leaves, or asks for something else,
// while ranks that are processes add up. Every survivor must say in time who it was, and no sum may
// be wrong.
//
//   SLUICE_CHAOS_RUNS=1000   how many (150)
//   SLUICE_CHAOS_SEED=n      of the first; run i has seed n + i, so one can be run again alone
#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <thread>

#include "sluice/algorithms.h"
#include "sluice/communicator.h"

namespace sluice {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr auto kDeadline = 10s;
#else
constexpr auto kDeadline = 2s;
#endif

enum class Fault { Kill, Stop, Crash, Leave, OtherSize, OtherType, OtherOp, OtherCollective };
constexpr std::array kFaults{"kill",       "stop",       "crash",    "leave",
                             "other size", "other type", "other op", "other collective"};

bool comes_from_outside(Fault fault) { return fault <= Fault::Crash; }
bool is_mismatch(Fault fault) { return fault >= Fault::OtherSize; }

struct Scenario {
  std::uint64_t seed = 0;
  int ranks = 2;
  std::string algorithm;  // empty: chosen by size
  std::size_t count = 1;  // of i64
  bool pooled = false;
  Fault fault = Fault::Kill;
  Rank victim = 0;
  std::chrono::microseconds moment{0};  // after all have joined
  int iteration = 0;                    // at which a fault from inside happens

  std::string describe() const {
    return fmt::format("seed {}: {} of {} ranks, {} i64 {} by {}: {} rank {}", seed, "all_reduce",
                       ranks, count, pooled ? "in pools" : "elsewhere",
                       algorithm.empty() ? "choice" : algorithm,
                       kFaults[static_cast<std::size_t>(fault)], victim);
  }
};

Scenario scenario_of(std::uint64_t seed) {
  std::mt19937_64 random{seed};
  const auto below = [&](std::uint64_t n) { return random() % n; };
  Scenario scenario{.seed = seed};
  scenario.ranks = static_cast<int>(2 + below(7));
  // One time in four whatever the engine chooses.
  if (below(4) != 0) {
    std::vector<std::string_view> names;
    for (const Algorithm& algorithm : algorithms()) {
      if (algorithm.supports(Collective::AllReduce)) names.push_back(algorithm.name);
    }
    scenario.algorithm = names[below(names.size())];
  }
  // Up to 2 MiB, short ones as often. With nothing to send nobody is missed.
  scenario.count = 1 + below(std::uint64_t{1} << below(19));
  scenario.pooled = below(2) == 0;
  scenario.fault = static_cast<Fault>(below(kFaults.size()));
  scenario.victim = static_cast<Rank>(below(static_cast<std::uint64_t>(scenario.ranks)));
  scenario.moment = std::chrono::microseconds{below(std::uint64_t{1} << below(15))};
  scenario.iteration = static_cast<int>(below(20));
  return scenario;
}

std::int64_t value(Rank rank, int iteration, std::size_t element) {
  return (rank + 1) * 1'000'000'007LL + iteration * 7919LL + static_cast<std::int64_t>(element);
}

// Collectives until one fails. Returns what is to be told: "error " and the message, or what else
// went wrong. A victim of Leave returns "left".
std::string add_up(const Scenario& scenario, Rank me, int ready) {
  Communicator comm = Communicator::from_env(30s);
  comm.set_deadline(kDeadline);
  // One more than needed, for who asks for another size.
  const Pool pool = comm.allocate((scenario.count + 1) * sizeof(std::int64_t));
  std::vector<std::int64_t> foreign(scenario.count + 1);
  const std::span<std::int64_t> data = scenario.pooled ? pool.as<std::int64_t>() : foreign;
  if (write(ready, "", 1) != 1) return "cannot tell that it is ready";
  for (int i = 0;; ++i) {
    const bool now = me == scenario.victim && i == scenario.iteration;
    if (now && scenario.fault == Fault::Leave) return "left";
    CollectiveOptions options{.type = DataType::I64, .algorithm = scenario.algorithm};
    std::size_t count = scenario.count;
    if (now && scenario.fault == Fault::OtherSize) ++count;
    if (now && scenario.fault == Fault::OtherType) options.type = DataType::F64;
    if (now && scenario.fault == Fault::OtherOp) options.op = ReduceOp::Max;
    for (std::size_t e = 0; e < scenario.count; ++e) data[e] = value(me, i, e);
    try {
      if (now && scenario.fault == Fault::OtherCollective) {
        comm.broadcast(data.data(), count, {.type = DataType::I64}).wait();
      } else {
        comm.all_reduce(data.data(), count, options).wait();
      }
    } catch (const Error& error) {
      try {
        comm.barrier();
      } catch (const Error& again) {
        if (std::string_view{again.what()} == error.what())
          return fmt::format("error {}", error.what());
        return fmt::format("poisoned with another cause: {} / {}", error.what(), again.what());
      }
      return fmt::format("not poisoned after {}", error.what());
    }
    for (std::size_t e = 0; e < scenario.count; ++e) {
      std::int64_t sum = 0;
      for (Rank rank = 0; rank < comm.size(); ++rank) sum += value(rank, i, e);
      if (data[e] != sum)
        return fmt::format("iteration {}, element {}: {} instead of {}", i, e, data[e], sum);
    }
  }
}

struct RankProcess {
  pid_t pid = 0;
  int report = -1;
  std::string said;
  bool ended = false;
  Clock::time_point when;
};

RankProcess start_rank(const Scenario& scenario, Rank me, int ready, const std::string& cache) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) std::abort();
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid != 0) {
    close(ends[1]);
    return {.pid = pid, .report = ends[0]};
  }
  constexpr unsigned kLongest = 90;  // seconds, should the parent fail
  alarm(kLongest);
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  setenv("SLUICE_RANK", std::to_string(me).c_str(), 1);
  setenv("SLUICE_RANKS", std::to_string(scenario.ranks).c_str(), 1);
  setenv("SLUICE_JOB", fmt::format("chaos-{}-{}", parent, scenario.seed).c_str(), 1);
  setenv("SLUICE_CACHE", cache.c_str(), 1);
  std::string said;
  try {
    said = add_up(scenario, me, ready);
  } catch (const std::exception& error) {
    said = fmt::format("threw {}", error.what());
  }
  (void)!write(ends[1], said.data(), said.size());
  _exit(0);
}

// Reads what ranks say until all but `except` have ended, or until the deadline.
void listen(std::vector<RankProcess>& ranks, Rank except, Clock::time_point deadline) {
  const auto open = [&](std::size_t i) {
    return !ranks[i].ended && static_cast<Rank>(i) != except;
  };
  while (Clock::now() < deadline) {
    std::vector<pollfd> polled;
    std::vector<std::size_t> whose;
    for (std::size_t i = 0; i < ranks.size(); ++i) {
      if (!open(i)) continue;
      polled.push_back({ranks[i].report, POLLIN, 0});
      whose.push_back(i);
    }
    if (polled.empty()) return;
    poll(polled.data(), polled.size(), 20);
    for (std::size_t p = 0; p < polled.size(); ++p) {
      if (polled[p].revents == 0) continue;
      std::array<char, 4096> text{};
      const ssize_t bytes = read(polled[p].fd, text.data(), text.size());
      RankProcess& rank = ranks[whose[p]];
      if (bytes > 0) {
        rank.said.append(text.data(), static_cast<std::size_t>(bytes));
      } else {
        rank.ended = true;
        rank.when = Clock::now();
      }
    }
  }
}

// Why the scenario did not end as it must, or "".
std::string verdict(const Scenario& scenario, const std::vector<RankProcess>& ranks,
                    Clock::time_point fault_at) {
  for (Rank rank = 0; rank < scenario.ranks; ++rank) {
    const RankProcess& process = ranks[static_cast<std::size_t>(rank)];
    const bool victim = rank == scenario.victim;
    if (victim && !is_mismatch(scenario.fault)) continue;
    if (!process.ended) return fmt::format("rank {} had not ended in time", rank);
    if (!process.said.starts_with("error "))
      return fmt::format("rank {} said: {}", rank, process.said);
    if (process.when - fault_at > kDeadline + 1s) {
      return fmt::format("rank {} was late, by {} ms", rank,
                         (process.when - fault_at - kDeadline) / 1ms);
    }
    const auto names = [&](const std::string& part) {
      return process.said.find(part) != std::string::npos;
    };
    // In its own words, or those of a peer that found out first.
    const Rank culprit = scenario.victim;
    bool right = !victim && names(fmt::format("because of rank {}", culprit));
    if (is_mismatch(scenario.fault)) {
      right = right || (names(fmt::format("rank {}: it calls", rank)) &&
                        (victim || names(fmt::format("but rank {} calls", culprit))));
    } else {
      right = right || names(fmt::format("rank {} is {}", culprit,
                                         scenario.fault == Fault::Stop ? "stopped" : "lost"));
    }
    if (!right || !names(" #") || (!is_mismatch(scenario.fault) && !names("step ")))
      return fmt::format("rank {} blames another: {}", rank, process.said);
  }
  return "";
}

std::string run(const Scenario& scenario, const std::string& cache) {
  std::array<int, 2> ready{};
  if (pipe2(ready.data(), O_CLOEXEC) != 0) return "no pipe";
  std::vector<RankProcess> ranks;
  for (Rank rank = 0; rank < scenario.ranks; ++rank)
    ranks.push_back(start_rank(scenario, rank, ready[1], cache));
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
    const pid_t victim = ranks[static_cast<std::size_t>(scenario.victim)].pid;
    if (scenario.fault == Fault::Kill) kill(victim, SIGKILL);
    if (scenario.fault == Fault::Stop) kill(victim, SIGSTOP);
    if (scenario.fault == Fault::Crash) kill(victim, SIGSEGV);
    const auto fault_at = Clock::now();
    // Faults from inside come when their iteration does: ranks are quick but take turns.
    const auto slack = comes_from_outside(scenario.fault) ? 2s : 20s;
    listen(ranks, scenario.fault == Fault::Stop ? scenario.victim : kOwn,
           fault_at + kDeadline + 1s + slack);
    wrong =
        verdict(scenario, ranks, comes_from_outside(scenario.fault) ? fault_at : fault_at + slack);
  }
  for (const RankProcess& rank : ranks) {
    kill(rank.pid, SIGKILL);
    int status = 0;
    waitpid(rank.pid, &status, 0);
    close(rank.report);
  }
  return wrong;
}

std::uint64_t number_from(const char* variable, std::uint64_t fallback) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? fallback : std::strtoull(text, nullptr, 10);
}

TEST(Chaos, EverySurvivorNamesTheCulpritInTimeAndNoSumIsWrong) {
  const std::uint64_t runs = number_from("SLUICE_CHAOS_RUNS", 150);
  const std::uint64_t seed = number_from("SLUICE_CHAOS_SEED", std::random_device{}());
  const std::string cache = testing::TempDir() + fmt::format("chaos-{}", getpid());
  fmt::print("{} runs from seed {}\n", runs, seed);
  std::uint64_t wrong_runs = 0;
  for (std::uint64_t i = 0; i < runs && wrong_runs < 5; ++i) {
    const Scenario scenario = scenario_of(seed + i);
    const std::string wrong = run(scenario, cache);
    if (wrong.empty()) continue;
    ++wrong_runs;
    ADD_FAILURE() << scenario.describe() << "\n  " << wrong
                  << "\n  again: SLUICE_CHAOS_SEED=" << scenario.seed << " SLUICE_CHAOS_RUNS=1";
  }
  std::filesystem::remove_all(cache);
}

}  // namespace
}  // namespace sluice
