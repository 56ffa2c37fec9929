// chaos.h - faults at random moments while ranks add up: what is common to all transports.
//
// Ranks are processes that add up again and again; a scenario says how many, by which algorithm,
// and what happens to whom. Every survivor must say in time who it was, and no sum may be wrong.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sluice/communicator.h"

namespace sluice::engine::chaos {

using Clock = std::chrono::steady_clock;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::chrono::seconds kDeadline{10};
#else
inline constexpr std::chrono::seconds kDeadline{2};
#endif

enum class Fault {
  Kill,
  Stop,
  Crash,
  CutLink,   // of the victim's host
  Vanish,    // the victim's host: its link and all its ranks, without a word
  SlowLink,  // all must go on
  Leave,     // from here on from inside
  OtherSize,
  OtherType,
  OtherOp,
  OtherCollective,
};

struct Scenario {
  std::uint64_t seed = 0;
  int ranks = 2;
  std::vector<int> hosts;  // of every rank; all 0 on one machine
  std::string algorithm;   // empty: chosen by size
  std::size_t count = 1;   // of i64
  bool pooled = false;
  Fault fault = Fault::Kill;
  Rank victim = 0;
  std::chrono::microseconds moment{0};  // after all have joined
  int iteration = 0;                    // at which a fault from inside happens

  int host(Rank rank) const { return hosts[static_cast<std::size_t>(rank)]; }
  std::string describe() const;
};

// Of that seed, on so many hosts; faults of links and hosts only where there are several.
Scenario scenario_of(std::uint64_t seed, int hosts);

// Where ranks live, and what can be done to their links.
struct World {
  // Starts a process on a host, whose environment and body are given.
  std::function<pid_t(int host, const std::function<int()>& body)> start;
  std::function<void(int host)> cut = [](int) {};
  std::function<void(int host)> slow = [](int) {};
  std::function<void(int host)> mend = [](int) {};
  std::function<std::string(int host)> address = [](int) { return ""; };
  // NAME and VALUE that ranks need besides rank, job and where to meet.
  std::vector<std::pair<std::string, std::string>> environment;
};

// Why the scenario did not end as it must, or "".
std::string run(const Scenario& scenario, const World& world);

// SLUICE_CHAOS_RUNS scenarios from SLUICE_CHAOS_SEED on; failures are test failures.
void run_many(std::uint64_t runs, int hosts, const World& world);

}  // namespace sluice::engine::chaos
