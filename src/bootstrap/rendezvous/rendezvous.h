// rendezvous.h - where the ranks of several machines find each other.
//
// Rank 0 listens at the master address; every rank calls there, says who it is and where it can be
// reached itself, and is told the same of all others once all have come. A caller that does not
// know the token, or does not speak as a rank does, is refused and forgotten. What a rank can be
// reached by is the address of the interface that it reaches the master through, unless the user
// names another one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "bootstrap/host.h"  // node_identity()
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/wait.h"

namespace sluice::bootstrap {

struct RendezvousOptions {
  Rank rank = 0;
  int ranks = 1;
  int local_ranks = 0;  // of this rank's machine, as its launcher says; 0: it does not say
  std::string token;
  std::string master;  // a name or an address
  std::uint16_t port = 0;
  std::string interface;  // by its name or its address; empty: the one that leads to the master
  std::string node = node_identity();  // equal for ranks that share memory
  transport::Clock::time_point deadline;
  // Hears how it goes: "5 of 8 ranks joined, waiting for 3 on host b".
  std::function<void(const std::string&)> report = [](const std::string&) {};
};

// Who a rank is to the others.
struct RankInfo {
  std::string host;     // its machine's name, for messages
  std::string node;     // the same for two ranks when they can share memory
  std::string address;  // of its listener, numeric
  std::uint16_t port = 0;
  int process = 0;
};

struct RendezvousResult {
  std::vector<RankInfo> participants;  // by rank
  base::Fd listener;                   // this rank's: where its address and port say
  std::string interface;               // the name of what was chosen, as "eth0"
};

// Blocks until all ranks have met. Fails with a sentence that says who is missing, or what is wrong
// with the address. Looking up a name that is no number may take longer than the deadline, as the
// system's resolver has times of its own.
Result<RendezvousResult> rendezvous(const RendezvousOptions& meeting);

}  // namespace sluice::bootstrap
