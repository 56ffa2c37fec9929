// chaos.h - faults at random moments while ranks run all_reduces, on any transport.
//
// Ranks are processes that run one all_reduce after the other. A scenario has the number of ranks,
// the algorithm, the fault and its victim. Every survivor must name the victim in time, and no sum
// may be wrong.
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
// The deadline counts from the last data. Data of the collective that a fault interrupts arrives
// for that long after it.
inline constexpr std::chrono::milliseconds kGrace = std::chrono::milliseconds{kDeadline} / 2;

enum class Fault {
  Kill,
  Stop,
  Crash,
  CutLink,   // the link of the victim's host
  Vanish,    // the link of the victim's host is cut and all its ranks are killed
  SlowLink,  // no failure: all ranks must go on
  Leave,     // from here on the victim itself causes the fault
  OtherSize,
  OtherType,
  OtherOp,
  OtherCollective,
};

struct Scenario {
  std::uint64_t seed = 0;
  int ranks = 2;
  std::vector<int> hosts;  // by rank; all 0 on one machine
  std::string algorithm;   // empty: chosen by size
  std::size_t count = 1;   // elements of i64
  bool pooled = false;
  Fault fault = Fault::Kill;
  Rank victim = 0;
  std::chrono::microseconds moment{0};  // the time of a fault from outside, after all have joined
  int iteration = 0;                    // the iteration in which the victim causes its fault

  int host(Rank rank) const { return hosts[static_cast<std::size_t>(rank)]; }
  std::string describe() const;
};

// The scenario of a seed. Faults of links and hosts occur only with several hosts.
Scenario scenario_of(std::uint64_t seed, int hosts);

// Starts ranks on hosts, and changes the links of hosts.
struct HostControl {
  // Starts a process on a host that runs `body`, and returns its pid.
  std::function<pid_t(int host, const std::function<int()>& body)> start;
  std::function<void(int host)> cut = [](int) {};
  std::function<void(int host)> slow = [](int) {};
  std::function<void(int host)> mend = [](int) {};
  std::function<std::string(int host)> address = [](int) { return ""; };
  // Further environment variables of the ranks, as name and value.
  std::vector<std::pair<std::string, std::string>> environment;
};

// Runs the scenario. Returns "" when it ends as it must, else the error.
std::string run(const Scenario& scenario, const HostControl& control);

// Runs SLUICE_CHAOS_RUNS scenarios from seed SLUICE_CHAOS_SEED on. Their failures are test
// failures.
void run_many(std::uint64_t runs, int hosts, const HostControl& control);

}  // namespace sluice::engine::chaos
