// placement.h - the rank of this process, from the environment variables of its launcher.
//
// If one launcher runs inside another, the variables of both are set, and the inner launcher
// counts. The launchers are tried in this order: sluice launch, torchrun, Open MPI, MPICH, Slurm,
// then a bare RANK and WORLD_SIZE. Without any of them the process is a single rank.
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
  bool local_known = false;  // the launcher set local_ranks; else all ranks are assumed local
  std::string job;           // equal on all ranks; empty for a single rank
  std::string token;         // equal on all ranks; a process needs it to join
  bool token_given = false;  // the user gave it; else the token is the job, which is not secret
  std::string master;        // the address of rank 0's node; empty: unknown
  std::uint16_t port = kDefaultPort;  // the rendezvous listens there
  std::string interface;              // other nodes reach this rank through it; empty: any
  std::string_view launcher = "none";
};

// The value of SLUICE_TOKEN, else the token in the file that SLUICE_TOKEN_FILE names. Fails if that
// file has no token.
Result<std::optional<std::string>> given_token(const Environment& environment);
Result<std::string> read_token_file(const std::string& path);

// Fails if variables contradict each other or are not numbers.
Result<Placement> placement_of(const Environment& environment);

// The n-th number, from 0, of Slurm's list of counts: "4(x2),3" means 4, 4, 3. nullopt if the list
// is malformed or too short.
std::optional<std::int64_t> nth_slurm_count(std::string_view list, std::int64_t n,
                                            std::int64_t most);

// The first name in Slurm's list of nodes: node03 of "node[03-07,9],x". Empty if the list is
// malformed.
std::string first_slurm_node(std::string_view list);

}  // namespace sluice::bootstrap
