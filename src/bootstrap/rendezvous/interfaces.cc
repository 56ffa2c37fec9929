#include "bootstrap/rendezvous/interfaces.h"

#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <map>

#include "base/format.h"
#include "base/text.h"

namespace sluice::bootstrap {

std::vector<Interface> interfaces() {
  std::vector<Interface> all;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return all;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || (entry->ifa_flags & IFF_UP) == 0) continue;
    const int family = entry->ifa_addr->sa_family;
    if (family != AF_INET && family != AF_INET6) continue;
    all.push_back({entry->ifa_name, transport::SocketAddress::of(*entry->ifa_addr)});
  }
  freeifaddrs(first);
  return all;
}

std::string list_interfaces() {
  std::map<std::string, std::vector<std::string>> by_name;
  for (const Interface& interface : interfaces())
    by_name[interface.name].push_back(interface.address.host());
  std::vector<std::string> shown;
  for (const auto& [name, addresses] : by_name)
    shown.push_back(base::format("{} ({})", name, base::join(addresses, ", ")));
  return shown.empty() ? "none" : base::format("{}", base::join(shown, ", "));
}

Result<Interface> find_interface(const std::string& name_or_address, int family) {
  std::vector<Interface> found = interfaces();
  const auto address = transport::SocketAddress::numeric(name_or_address, 0);
  std::erase_if(found, [&](const Interface& interface) {
    return interface.name != name_or_address &&
           !(address && interface.address.host() == address->host());
  });
  if (found.empty()) {
    return Status{Code::InvalidInput,
                  base::format("this machine has no interface {}: there are {}",
                               base::quote(name_or_address), list_interfaces())};
  }
  const auto worth = [&](const Interface& interface) {
    return (interface.address.link_local() ? 0 : 2) +
           (interface.address.family() == family ? 1 : 0);
  };
  return *std::max_element(found.begin(), found.end(), [&](const Interface& a, const Interface& b) {
    return worth(a) < worth(b);
  });
}

std::string interface_with(const transport::SocketAddress& address) {
  const std::string host = address.host();
  for (const Interface& interface : interfaces()) {
    if (interface.address.host() == host) return interface.name;
  }
  // The loopback interface has all of 127.0.0.0/8, and tells of one address.
  return address.loopback() ? "lo" : "";
}

}  // namespace sluice::bootstrap
