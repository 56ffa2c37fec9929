// host.h - this machine: its name, its identity, its network interfaces and its cores.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::bootstrap {

std::string host_name();

// Equal for two processes exactly when they can share memory: they are on one machine and in one
// network namespace.
std::string node_identity();

struct Interface {
  std::string name;
  transport::SocketAddress address;
};

// One entry for each address of each interface that is up.
std::vector<Interface> interfaces();

// "eth0 (10.0.0.1, fd00::1), lo (127.0.0.1)".
std::string list_interfaces();

// Finds an interface by name or by address. If it has several addresses, it prefers a routable one,
// then one of the given family. The error lists all interfaces.
Result<Interface> find_interface(const std::string& name_or_address, int family);

// The name of the interface that has this address; empty if none has.
std::string interface_with(const transport::SocketAddress& address);

// The cores a process may run on; a container or taskset may limit them. 0: this process.
std::vector<int> usable_cores(int process = 0);

// A rank's share of the cores: consecutive entries. Shares differ by at most one core. If there are
// more ranks than cores, each rank has one core, and the ranks are spread evenly. REQUIRES: cores
// is not empty.
std::span<const int> share_of_cores(std::span<const int> cores, int ranks, Rank rank);

// Runs the calling thread on these cores only; false if the system refuses. Async-signal-safe.
bool pin_to(std::span<const int> cores);

}  // namespace sluice::bootstrap
