#include "bootstrap/launch/cores.h"

#include <sched.h>

#include <algorithm>
#include <array>

namespace sluice::bootstrap {
namespace {

// cpu_set_t alone ends at 1,024 cores.
constexpr int kSets = 8;
using CoreSet = std::array<cpu_set_t, kSets>;

}  // namespace

std::vector<int> usable_cores(int process) {
  CoreSet set{};
  std::vector<int> cores;
  if (sched_getaffinity(process, sizeof set, set.data()) == 0) {
    for (int core = 0; core < kSets * CPU_SETSIZE; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), sizeof set, set.data()))
        cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::span<const int> share_of_cores(std::span<const int> cores, int ranks, Rank rank) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t first = r * cores.size() / n;
  const std::size_t end = (r + 1) * cores.size() / n;
  return cores.subspan(first, std::max<std::size_t>(end - first, 1));
}

bool pin_to(std::span<const int> cores) {
  CoreSet set{};
  for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), sizeof set, set.data());
  return sched_setaffinity(0, sizeof set, set.data()) == 0;
}

}  // namespace sluice::bootstrap
