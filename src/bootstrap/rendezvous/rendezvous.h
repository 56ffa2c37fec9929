// rendezvous.h - how the ranks of several machines find each other.
//
// Rank 0 is the server and listens at the master address. Every other rank connects to it, sends
// its rank and the address of its own listener, and receives the ranks and addresses of all when
// all have joined. Each side proves that it knows the token (transport/token_proof.h). The server
// refuses clients that do not, or that send garbage; a client leaves such a server. A rank's
// listener has the address of the interface that leads to the master, unless the user names another
// interface.
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
  int local_ranks = 0;  // ranks on this machine, according to the launcher; 0: unknown
  std::string token;
  std::string master;  // name or address of rank 0's machine
  std::uint16_t port = 0;
  std::string interface;               // name or address; empty: the one that leads to the master
  std::string node = node_identity();  // equal for ranks that share memory
  transport::Clock::time_point deadline;
  // Receives progress messages: "5 of 8 ranks joined, waiting for 3 on host b".
  std::function<void(const std::string&)> report = [](const std::string&) {};
};

// The information about a rank that all ranks receive.
struct RankInfo {
  std::string host;     // its machine, for messages
  std::string node;     // equal for ranks that share memory
  std::string address;  // of its listener, numeric
  std::uint16_t port = 0;
  int process = 0;
};

struct RendezvousResult {
  std::vector<RankInfo> participants;  // by rank
  base::Fd listener;                   // of this rank, at its address and port
  std::string interface;               // the name of the chosen interface: "eth0"
};

// Blocks until all ranks have joined. An error names the missing ranks, or says why the address
// cannot be used. The look-up of a host name may exceed the deadline: the system's resolver has its
// own timeouts.
Result<RendezvousResult> rendezvous(const RendezvousOptions& options);

}  // namespace sluice::bootstrap
