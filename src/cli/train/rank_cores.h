// rank_cores.h - the cores and threads of a rank that some launcher has started.
#pragma once

#include <span>
#include <vector>

#include "bootstrap/environment.h"
#include "bootstrap/placement.h"

namespace sluice::cli {

struct RankThreads {
  int compute = 1;
  int loader = 1;
};

// Images that must be decoded take threads of their own out of the rank's; those in memory none.
RankThreads share_threads(int threads, bool decodes);

// Pins this process to its share of the node's cores and sets OMP_NUM_THREADS, as `sluice launch`
// does it: not where the launcher has bound it already, nor a number that the user has set. Before
// libraries that start threads are loaded.
void take_share_of_cores(const bootstrap::Placement& placement,
                         const bootstrap::Environment& environment);

// As that or `sluice launch` left them.
int threads_of_rank(const bootstrap::Environment& environment);

}  // namespace sluice::cli
