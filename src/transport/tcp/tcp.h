// tcp.h - a network of plain TCP connections.
//
// A message is sent straight from where its bytes lie and is out of the rank's hands when the
// kernel has it all. What arrives is read straight to its place where it is only copied, else into
// a buffer, a piece that stays in the core's cache at a time. Who leaves in order says so, and what
// it sent before still arrives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/file.h"
#include "transport/network.h"
#include "transport/tcp/tcp_mesh.h"

namespace sluice::transport {

struct TcpOptions {
  Rank rank = 0;
  std::vector<TcpAddress> addresses;  // by rank; of a rank of this node, port 0
  std::string own_address;            // that of the listener; empty: any
  base::Fd listener;
  std::string token;
  int wake_descriptor = -1;  // what wakes this rank; must outlive the network
  Clock::time_point deadline;
};

// Returns when all ranks are connected, or fails with a sentence that says who is not.
Result<std::unique_ptr<Network>> make_tcp_network(TcpOptions options);

}  // namespace sluice::transport
