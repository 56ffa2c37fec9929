// interfaces.h - the network interfaces of this machine and their addresses.
#pragma once

#include <string>
#include <vector>

#include "sluice/status.h"
#include "transport/tcp/socket_address.h"

namespace sluice::bootstrap {

struct Interface {
  std::string name;
  transport::SocketAddress address;
};

// One for each address of each interface that is up.
std::vector<Interface> interfaces();

// "eth0 (10.0.0.1, fd00::1), lo (127.0.0.1)".
std::string list_interfaces();

// By name or by address. Of several addresses one of the given family comes first, and one that
// other machines can use as it is. Fails with a sentence that lists those there are.
Result<Interface> find_interface(const std::string& name_or_address, int family);

// The name of the one that has that address; empty where none has.
std::string interface_with(const transport::SocketAddress& address);

}  // namespace sluice::bootstrap
