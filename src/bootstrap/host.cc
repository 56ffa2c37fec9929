#include "bootstrap/host.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <map>

#include "base/format.h"
#include "base/text.h"

namespace sluice::bootstrap {
namespace {

// One cpu_set_t has only 1,024 cores.
constexpr int kSets = 8;
using CoreSet = std::array<cpu_set_t, kSets>;

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "host";
  return name.data();
}

std::string node_identity() {
  std::string boot;
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  // Without /proc, use the host name; containers on one machine have different names.
  if (!std::getline(file, boot) || boot.empty()) boot = host_name();
  struct stat space {};
  if (stat("/proc/self/ns/net", &space) != 0) return boot;
  return base::format("{}/{}", boot, space.st_ino);
}

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
                  base::format("this machine has no interface {}: its interfaces are {}",
                               base::quote(name_or_address), list_interfaces())};
  }
  const auto preference = [&](const Interface& interface) {
    return (interface.address.link_local() ? 0 : 2) +
           (interface.address.family() == family ? 1 : 0);
  };
  return *std::max_element(found.begin(), found.end(), [&](const Interface& a, const Interface& b) {
    return preference(a) < preference(b);
  });
}

std::string interface_with(const transport::SocketAddress& address) {
  const std::string host = address.host();
  for (const Interface& interface : interfaces()) {
    if (interface.address.host() == host) return interface.name;
  }
  // The loopback interface has all of 127.0.0.0/8 but lists only one address.
  return address.loopback() ? "lo" : "";
}

std::vector<int> usable_cores(int process) {
  CoreSet set{};
  std::vector<int> cores;
  if (sched_getaffinity(process, sizeof set, set.data()) == 0) {
    for (int core = 0; core < kSets * CPU_SETSIZE; ++core) {
      if (CPU_ISSET_S(static_cast<std::size_t>(core), sizeof set, set.data()))
        cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

std::span<const int> share_of_cores(std::span<const int> cores, int ranks, Rank rank) {
  const auto n = static_cast<std::size_t>(ranks);
  const auto r = static_cast<std::size_t>(rank);
  const std::size_t first = r * cores.size() / n;
  const std::size_t end = (r + 1) * cores.size() / n;
  return cores.subspan(first, std::max<std::size_t>(end - first, 1));
}

bool pin_to(std::span<const int> cores) {
  CoreSet set{};
  for (const int core : cores) CPU_SET_S(static_cast<std::size_t>(core), sizeof set, set.data());
  return sched_setaffinity(0, sizeof set, set.data()) == 0;
}

}  // namespace sluice::bootstrap
