#include "tests/box/cluster_box.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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
// Runs a command line. The error has its output.
Status run(const std::string& line) {
  FILE* const pipe = popen((line + " 2>&1").c_str(), "r");  // NOLINT: the tests' own lines
  if (pipe == nullptr) return {Code::InvalidInput, "no shell can be started"};
  std::string output;
  std::array<char, 256> part{};
  while (fgets(part.data(), part.size(), pipe) != nullptr) output += part.data();
  if (pclose(pipe) == 0) return {};
  return {Code::InvalidInput, base::format("'{}' failed: {}", line, output)};
}

// Runs several command lines, up to the first failure.
Status run_all(const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    if (Status status = run(line); !status.ok()) return status;
  }
  return {};
}

std::string in_namespace(const std::string& name, const std::string& line) {
  return base::format("ip netns exec {} {}", name, line);
}

// Limits the rate of the packets that leave an interface.
std::string limit_command(const std::string& name, const std::string& device, int mbit_per_s) {
  const std::string discipline = mbit_per_s == 0
                                     ? "noqueue"
                                     : base::format("tbf rate {}mbit burst {} latency 100ms",
                                                    mbit_per_s, burst_bytes(mbit_per_s));
  return in_namespace(name, base::format("tc qdisc replace dev {} root {}", device, discipline));
}

// A link between two namespaces with a limited rate in each direction. Its far end is in the bridge
// of the namespace `to`.
std::vector<std::string> link_commands(const std::string& from, const std::string& device,
                                       const std::string& to, const std::string& port,
                                       int mbit_per_s) {
  return {base::format("ip -n {} link add name {} type veth peer name {} netns {}", from, device,
                       port, to),
          base::format("ip -n {} link set {} master bridge0", to, port),
          base::format("ip -n {} link set {} up", to, port),
          base::format("ip -n {} link set {} up", from, device),
          limit_command(from, device, mbit_per_s),
          limit_command(to, port, mbit_per_s)};
}

bool enter_namespace(const std::string& name) {
  const int fd = open(("/var/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC);
  const bool entered = fd >= 0 && setns(fd, CLONE_NEWNET) == 0;
  if (fd >= 0) close(fd);
  return entered;
}

// Starts a process that removes the namespaces when this process closes the returned end of a pipe.
// The end of this process closes it too, whatever the cause.
base::Fd start_cleaner(const std::string& prefix) {
  const std::string wait_and_remove = base::format(
      "cat; for name in $(ip netns list | grep -o '^{}-[a-z0-9]*'); do"
      " ip netns pids $name | xargs -r kill -9; ip netns del $name; done",
      prefix);
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  const pid_t child = fork();
  if (child == 0) {
    setsid();  // signals to the holder's process group must not reach it
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

// The TCP segments that all connections of this namespace have sent again.
std::uint64_t retransmitted_segments() {
  std::ifstream file{"/proc/net/snmp"};  // for every protocol a line of names and a line of values
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

std::int64_t burst_bytes(int mbit_per_s) {
  // A token bucket of 64 KiB is too small for the large segments that the kernel passes on whole.
  constexpr std::int64_t kLeast = 192 * 1024;
  // The timer that refills the bucket may be late on a busy core, and the link is then idle.
  constexpr double kLateS = 5e-4;
  constexpr double kBytesPerMbit = 1e6 / 8;
  return mbit_per_s == 0
             ? 0
             : std::max(kLeast, static_cast<std::int64_t>(kLateS * kBytesPerMbit * mbit_per_s));
}

ClusterBox::ClusterBox(const BoxOptions& options) : options_{options} {
  static std::atomic<int> boxes{0};
  prefix_ = base::format("sluice-{}-{}", getpid(), boxes++);
  cleaner_ = start_cleaner(prefix_);
}

ClusterBox::ClusterBox(ClusterBox&& other) noexcept
    : options_{std::move(other.options_)},
      prefix_{std::move(other.prefix_)},
      cleaner_{std::move(other.cleaner_)},
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
      Status status = run_all(link_commands(
          name, "up0", switch_name(kTop), base::format("g{}", group), options_.uplink_mbit_per_s));
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
  Status status = run_all(link_commands(name, "net0", switch_name(group), base::format("p{}", host),
                                        options_.mbit_per_s));
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
      // Columns: bytes packets errs drop fifo frame compressed multicast, for received data and
      // then for sent data.
      std::array<unsigned long long, 10> n{};
      std::sscanf(line.c_str() + colon + device.size() + 1,  // NOLINT: the kernel's own format
                  "%llu %llu %*s %*s %*s %*s %*s %*s %llu %llu", &n[0], &n[1], &n[2], &n[3]);
      read_here = {n[2], n[3], n[0], n[1], retransmitted_segments()};
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
  return run_all(
      {limit_command(host_name(host), "net0", mbit_per_s),
       limit_command(switch_name(group_of(host)), base::format("p{}", host), mbit_per_s)});
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
  // /proc/net shows the namespace of the process that reads it.
  if (!enter_namespace(name)) _exit(127);
  _exit(body());
}

}  // namespace sluice::box
