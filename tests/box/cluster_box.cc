#include "tests/box/cluster_box.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <utility>

#include "base/format.h"

namespace sluice::box {
namespace {

constexpr int kTop = -1;
// A bucket of 64 KiB is too small for the segments that the kernel hands down whole.
constexpr const char* kBurst = "192kb";

// Runs a command line; what it says when it fails is the error.
Status run(const std::string& line) {
  FILE* const pipe = popen((line + " 2>&1").c_str(), "r");  // NOLINT: the tests' own lines
  if (pipe == nullptr) return {Code::InvalidInput, "no shell can be started"};
  std::string said;
  std::array<char, 256> part{};
  while (fgets(part.data(), part.size(), pipe) != nullptr) said += part.data();
  if (pclose(pipe) == 0) return {};
  return {Code::InvalidInput, base::format("'{}' failed: {}", line, said)};
}

// The first failure of several lines.
Status run_all(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (Status status = run(line); !status.ok()) return status;
  }
  return {};
}

std::string inside(const std::string& name, const std::string& line) {
  return base::format("ip netns exec {} {}", name, line);
}

// What leaves an interface goes no faster than that.
std::string limit(const std::string& name, const std::string& device, int mbit_per_s) {
  return inside(name,
                base::format("tc qdisc replace dev {} root tbf rate {}mbit burst {} latency 100ms",
                             device, mbit_per_s, kBurst));
}

// A cable between two namespaces, with a rate each way, its far end in the bridge there.
std::vector<std::string> cable(const std::string& from, const std::string& device,
                               const std::string& to, const std::string& port, int mbit_per_s) {
  return {base::format("ip -n {} link add name {} type veth peer name {} netns {}", from, device,
                       port, to),
          base::format("ip -n {} link set {} master bridge0", to, port),
          base::format("ip -n {} link set {} up", to, port),
          base::format("ip -n {} link set {} up", from, device),
          limit(from, device, mbit_per_s),
          limit(to, port, mbit_per_s)};
}

bool enter_namespace(const std::string& name) {
  const int place = open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = place >= 0 && setns(place, CLONE_NEWNET) == 0;
  if (place >= 0) close(place);
  return entered;
}

// A process of its own that removes the namespaces when the pipe's other end is closed, however its
// holder ends.
base::Fd start_janitor(const std::string& prefix) {
  const std::string wait_and_remove = base::format(
      "cat; for name in $(ip netns list | grep -o '^{}-[a-z0-9]*'); do"
      " ip netns pids $name | xargs -r kill -9; ip netns del $name; done",
      prefix);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    setsid();  // what stops the holder must not stop it
    const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (dup2(ends[0], 0) < 0 || dup2(nowhere, 1) < 0 || dup2(nowhere, 2) < 0 || fork() != 0)
      _exit(0);
    execlp("sh", "sh", "-c", wait_and_remove.c_str(), nullptr);
    _exit(127);
  }
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return base::Fd{ends[1]};
}

// By all TCP connections of this namespace.
std::uint64_t segments_sent_again() {
  std::ifstream file{"/proc/net/snmp"};  // of every protocol a line of names, then one of values
  std::string names;
  std::string values;
  while (std::getline(file, names) && std::getline(file, values)) {
    std::istringstream name_words{names};
    std::istringstream value_words{values};
    std::string name;
    std::string value;
    while (name_words >> name && value_words >> value) {
      if (names.starts_with("Tcp:") && name == "RetransSegs") return std::stoull(value);
    }
  }
  return 0;
}

}  // namespace

ClusterBox::ClusterBox(const BoxOptions& options) : options_{options} {
  static std::atomic<int> boxes{0};
  prefix_ = base::format("sluice-{}-{}", getpid(), boxes++);
  janitor_ = start_janitor(prefix_);
}

ClusterBox::ClusterBox(ClusterBox&& other) noexcept
    : options_{std::move(other.options_)},
      prefix_{std::move(other.prefix_)},
      janitor_{std::move(other.janitor_)},
      namespaces_{std::exchange(other.namespaces_, {})} {}

ClusterBox::~ClusterBox() {
  for (const std::string& name : namespaces_) {
    (void)run(base::format("ip netns pids {} | xargs -r kill -9", name));
    (void)run("ip netns del " + name);
  }
}

Result<ClusterBox> ClusterBox::make(const BoxOptions& options) {
  ClusterBox box{options};
  if (Status status = box.build(); !status.ok()) return status;
  return box;
}

std::string ClusterBox::host_name(int host) const { return base::format("{}-h{}", prefix_, host); }
std::string ClusterBox::switch_name(int group) const {
  return group == kTop ? prefix_ + "-top" : base::format("{}-s{}", prefix_, group);
}
std::string ClusterBox::address(int host) const { return base::format("10.77.0.{}", host + 1); }

Status ClusterBox::build() {
  const auto add_namespace = [&](const std::string& name) {
    Status status = run("ip netns add " + name);
    if (status.ok()) namespaces_.push_back(name);
    return status;
  };
  const auto add_switch = [&](const std::string& name) {
    if (Status status = add_namespace(name); !status.ok()) return status;
    return run_all({base::format("ip -n {} link add name bridge0 type bridge", name),
                    base::format("ip -n {} link set bridge0 up", name)});
  };
  std::vector<int> groups = options_.groups;
  if (groups.empty()) groups = {options_.hosts};
  const bool above = groups.size() > 1;
  if (above) {
    if (Status status = add_switch(switch_name(kTop)); !status.ok()) return status;
  }
  int host = 0;
  for (int group = 0; group < static_cast<int>(groups.size()); ++group) {
    const std::string name = switch_name(group);
    if (Status status = add_switch(name); !status.ok()) return status;
    if (above) {
      Status status = run_all(cable(name, "up0", switch_name(kTop), base::format("g{}", group),
                                    options_.uplink_mbit_per_s));
      if (status.ok()) status = run(base::format("ip -n {} link set up0 master bridge0", name));
      if (!status.ok()) return status;
    }
    for (int i = 0; i < groups[static_cast<std::size_t>(group)]; ++i, ++host) {
      if (Status status = add_namespace(host_name(host)); !status.ok()) return status;
      if (Status status = add_host(host, group); !status.ok()) return status;
    }
  }
  return {};
}

Status ClusterBox::add_host(int host, int group) {
  const std::string name = host_name(host);
  Status status = run_all(
      cable(name, "net0", switch_name(group), base::format("p{}", host), options_.mbit_per_s));
  if (!status.ok()) return status;
  return run_all({base::format("ip -n {} addr add {}/24 dev net0", name, address(host)),
                  base::format("ip -n {} link set lo up", name)});
}

LinkCounters ClusterBox::counters(int host) const { return counters_of(host_name(host), "net0"); }

LinkCounters ClusterBox::uplink_counters(int group) const {
  return counters_of(switch_name(group), "up0");
}

LinkCounters ClusterBox::counters_of(const std::string& name, const std::string& device) {
  LinkCounters counters;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return counters;
  const pid_t child = start_in(name, [&] {
    LinkCounters read_here;
    std::ifstream file{"/proc/net/dev"};
    for (std::string line; std::getline(file, line);) {
      const std::size_t colon = line.find(device + ":");
      if (colon == std::string::npos) continue;
      // bytes packets errs drop fifo frame compressed multicast, received and then sent
      std::array<unsigned long long, 10> n{};
      std::sscanf(line.c_str() + colon + device.size() + 1,  // NOLINT: the kernel's own format
                  "%llu %llu %*s %*s %*s %*s %*s %*s %llu %llu", &n[0], &n[1], &n[2], &n[3]);
      read_here = {n[2], n[3], n[0], n[1], segments_sent_again()};
    }
    return write(ends[1], &read_here, sizeof read_here) == sizeof read_here ? 0 : 1;
  });
  close(ends[1]);
  (void)!read(ends[0], &counters, sizeof counters);
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return counters;
}

Status ClusterBox::set_rate(int host, int mbit_per_s) {
  return run_all({limit(host_name(host), "net0", mbit_per_s),
                  limit(switch_name(group_of(host)), base::format("p{}", host), mbit_per_s)});
}
int ClusterBox::group_of(int host) const {
  int group = 0;
  for (const int hosts : options_.groups) {
    if (host < hosts) break;
    host -= hosts;
    ++group;
  }
  return group;
}
Status ClusterBox::cut(int host) {
  return run(base::format("ip -n {} link set net0 down", host_name(host)));
}
Status ClusterBox::mend(int host) {
  return run(base::format("ip -n {} link set net0 up", host_name(host)));
}

bool ClusterBox::enter(int host) const { return enter_namespace(host_name(host)); }

pid_t ClusterBox::start(int host, const std::function<int()>& body) const {
  return start_in(host_name(host), body);
}

pid_t ClusterBox::start_in(const std::string& name, const std::function<int()>& body) {
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  // A fresh /proc/net follows the namespace of whoever reads it.
  if (!enter_namespace(name)) _exit(127);
  _exit(body());
}

}  // namespace sluice::box
