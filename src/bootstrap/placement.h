// placement.h - which rank this process is, as its launcher told it.
//
// The innermost launcher counts: one that runs inside another sees the outer one's variables too.
// In that order: sluice launch, torchrun, Open MPI, MPICH, Slurm, a bare RANK and WORLD_SIZE; where
// none of them is found the process is a rank alone.
#pragma once

#include <string>
#include <string_view>

#include "bootstrap/environment.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice {

struct Placement {
  Rank rank = 0;
  int ranks = 1;
  Rank local_rank = 0;  // among the ranks of this node
  int local_ranks = 1;
  std::string job;    // the same on all ranks; empty for a rank alone
  std::string token;  // likewise; what the ranks of this job know each other by
  std::string_view launcher = "none";
};

// Fails with a sentence where variables contradict each other or are not numbers.
Result<Placement> placement_of(const Environment& environment);

}  // namespace sluice
