// mesh.h - how the processes of a node find each other: a Unix socket between every two ranks.
//
// A rank listens on an abstract name (nothing in the file system, gone with the process) that holds
// user, job and rank; it calls the lower ranks and is called by the higher ones. Whoever is not of
// the same user is hung up on unread; whoever does not know the token is refused. Each rank hands
// every peer its gift (packet.h) and one word. No rank is done before every rank has all its links.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/fd.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/memory/packet.h"
#include "transport/wait.h"

namespace sluice::transport {

struct MeshJoin {
  Rank rank = 0;
  int ranks = 1;
  std::string job;    // the same on all ranks, another one for every job of the user
  std::string token;  // what only ranks of this job know
  Clock::time_point deadline;
};

// What a rank has of a peer; of itself, nothing.
struct MeshLink {
  base::Fd socket;
  base::Fd process;  // a pidfd; not open where the system has none
  pid_t pid = 0;
  base::Fd memory;  // what it handed over
  base::Fd waker;
  std::uint64_t word = 0;
};

// One link a rank. Fails with a sentence that says who is missing.
Result<std::vector<MeshLink>> join_mesh(const MeshJoin& join, const SharedDescriptors& gift,
                                        std::uint64_t word);

}  // namespace sluice::transport
