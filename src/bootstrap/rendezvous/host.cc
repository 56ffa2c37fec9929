#include "bootstrap/rendezvous/host.h"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <fstream>

#include "base/format.h"

namespace sluice::bootstrap {

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "host";
  return name.data();
}

std::string node_identity() {
  std::string boot;
  std::ifstream file{"/proc/sys/kernel/random/boot_id"};
  // Without /proc the name must do; containers of one machine have different ones.
  if (!std::getline(file, boot) || boot.empty()) boot = host_name();
  struct stat space {};
  if (stat("/proc/self/ns/net", &space) != 0) return boot;
  return base::format("{}/{}", boot, space.st_ino);
}

}  // namespace sluice::bootstrap
