// cluster_box.h - several hosts on one machine: network namespaces that a switch connects.
//
// Every host is a namespace with one interface. Its link to its switch has a limited rate in each
// direction. Hosts may be in groups: each group then has a switch of its own, and a link with a
// limited rate to a switch above. The switches are namespaces too, so no packet leaves the box. The
// box disappears with the object, or when the process is killed. It needs Linux, root, ip and tc.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/file.h"
#include "sluice/status.h"

namespace sluice::box {

struct BoxOptions {
  int hosts = 2;
  int mbit_per_s = 1000;         // a host's link, in each direction; 0: unlimited
  std::vector<int> groups;       // the number of hosts of each group; empty: one switch for all
  int uplink_mbit_per_s = 1000;  // a group's link, in each direction; 0: unlimited
};

// The size of the token bucket of a link with that rate: what an idle link lets through at once.
std::int64_t burst_bytes(int mbit_per_s);

// The traffic on a host's link, as its interface counts it, headers included.
struct LinkCounters {
  std::uint64_t sent_bytes = 0;
  std::uint64_t sent_packets = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t received_packets = 0;
  std::uint64_t retransmitted = 0;  // TCP segments that the host sent again; 0 for a switch

  // The bytes sent since `before`, without headers and retransmitted segments. Ethernet, IP and TCP
  // headers are 66 bytes of each packet that the kernel handed to the link; a large segment is one
  // packet. On a stalled machine TCP takes packets for lost and sends them again.
  double payload_sent_since(const LinkCounters& before) const {
    constexpr double kHeaderBytes = 66;
    constexpr double kSegmentBytes = 1448;
    return static_cast<double>(sent_bytes - before.sent_bytes) -
           kHeaderBytes * static_cast<double>(sent_packets - before.sent_packets) -
           kSegmentBytes * static_cast<double>(retransmitted - before.retransmitted);
  }
};

class ClusterBox {
 public:
  // Fails where no box is possible: without root, namespaces or traffic shaping.
  static Result<ClusterBox> make(const BoxOptions& options);
  ~ClusterBox();
  ClusterBox(ClusterBox&& other) noexcept;
  ClusterBox& operator=(ClusterBox&&) = delete;

  int hosts() const { return options_.hosts; }
  std::string address(int host) const;

  LinkCounters counters(int host) const;
  int groups() const {
    return options_.groups.empty() ? 1 : static_cast<int>(options_.groups.size());
  }
  // The counters of a group's link to the switch above all groups. REQUIRES: groups() > 1.
  LinkCounters uplink_counters(int group) const;

  // Gives a host's link another rate; 0: unlimited.
  Status set_rate(int host, int mbit_per_s);
  // Takes a host's link down, and up again.
  Status cut(int host);
  Status mend(int host);

  // The name of the host's namespace, for `ip netns`.
  std::string host_name(int host) const;

  // Moves this process to that host. False: it cannot.
  bool enter(int host) const;

  // Starts a process on that host. Its exit status is the result of the body. It dies with its
  // parent.
  pid_t start(int host, const std::function<int()>& body) const;

 private:
  explicit ClusterBox(const BoxOptions& options);
  Status build();
  Status add_host(int host, int group);
  int group_of(int host) const;
  static LinkCounters counters_of(const std::string& name, const std::string& device);
  static pid_t start_in(const std::string& name, const std::function<int()>& body);
  std::string switch_name(int group) const;  // -1: the switch above all groups

  BoxOptions options_;
  std::string prefix_;
  base::Fd cleaner_;  // when it is closed, which any death does, a process removes all namespaces
  std::vector<std::string> namespaces_;  // created so far
};

}  // namespace sluice::box
