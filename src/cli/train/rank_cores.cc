#include "cli/train/rank_cores.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "base/text.h"
#include "bootstrap/host.h"

namespace sluice::cli {

RankThreads share_threads(int threads, bool decodes) {
  if (!decodes) return {.compute = std::max(1, threads), .loader = 0};
  const int loader = std::max(1, threads / 4);
  return {.compute = std::max(1, threads - loader), .loader = loader};
}

void take_share_of_cores(const bootstrap::Placement& placement,
                         const bootstrap::Environment& environment) {
  const std::vector<int> cores = bootstrap::usable_cores();
  // A launcher that binds its ranks gives each fewer cores than it has itself.
  const bool bound = bootstrap::usable_cores(getppid()) != cores;
  std::span<const int> share = cores;
  if (!bound) {
    share = bootstrap::share_of_cores(cores, placement.local_ranks, placement.local_rank);
    (void)bootstrap::pin_to(share);  // not to be pinned is slower, not wrong
  }
  if (!environment.has(bootstrap::variable::kThreads))
    setenv(bootstrap::variable::kThreads.name.data(), std::to_string(share.size()).c_str(), 0);
}

int threads_of_rank(const bootstrap::Environment& environment) {
  constexpr int kMostThreads = 4096;
  const auto text = environment.text(bootstrap::variable::kThreads);
  const auto number =
      text ? base::parse_whole(*text, 1, kMostThreads, bootstrap::variable::kThreads.name)
           : Result<std::int64_t>{1};
  return number.ok() ? static_cast<int>(number.value()) : 1;
}

}  // namespace sluice::cli
