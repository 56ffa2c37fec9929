// placement.h - which rank this process is, as its launcher told it.
//
// The innermost launcher counts: one that runs inside another sees the outer one's variables too.
// In that order: sluice launch, torchrun, Open MPI, MPICH, Slurm, a bare RANK and WORLD_SIZE; where
// none of them is found the process is a rank alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "bootstrap/environment.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::bootstrap {

inline constexpr std::uint16_t kDefaultPort = 29501;  // beside torch's 29500

struct Placement {
  Rank rank = 0;
  int ranks = 1;
  Rank local_rank = 0;  // among the ranks of this node
  int local_ranks = 1;
  bool local_known = false;  // the launcher told how many this node has; else all seem to be here
  std::string job;           // the same on all ranks; empty for a rank alone
  std::string token;         // likewise; what the ranks of this job know each other by
  bool token_given = false;  // by the user; else it is the job, which is no secret
  std::string master;        // where rank 0's node is; empty: not known
  std::uint16_t port = kDefaultPort;  // where rank 0 can be called there
  std::string interface;              // that this rank is to be reached through; empty: any
  std::string_view launcher = "none";
};

// Of SLUICE_TOKEN, else of the file that SLUICE_TOKEN_FILE names. Fails where that has none.
Result<std::optional<std::string>> given_token(const Environment& environment);
Result<std::string> token_of_file(const std::string& path);

// Fails with a sentence where variables contradict each other or are not numbers.
Result<Placement> placement_of(const Environment& environment);

// Reads Slurm's short list of counts, "4(x2),3" for 4, 4, 3: the n-th number, from 0; nullopt if
// the list is malformed or too short.
std::optional<std::int64_t> nth_of_counts(std::string_view list, std::int64_t n, std::int64_t most);

// Reads Slurm's short list of names, "node[03-07,9],x": the first name, node03; empty if the list
// is malformed.
std::string first_of_nodes(std::string_view list);

}  // namespace sluice::bootstrap
