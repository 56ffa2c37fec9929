// cluster_box.h - several hosts on one machine: network namespaces, joined by a switch.
//
// Every host is a namespace with one interface, whose link to its switch has a rate in each
// direction. Hosts may be in groups: each group then has a switch of its own, and a link, also with
// a rate, to a switch above. The switches are namespaces too, so no packet ever leaves the box, and
// all of it goes with the object, or with the process that is killed. Needs Linux, root, ip and tc.
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
  int mbit_per_s = 1000;         // of a host's link, each way
  std::vector<int> groups;       // hosts of each; empty: one switch for all
  int uplink_mbit_per_s = 1000;  // of a group's link, each way
};

// What went over a host's link, by its interface's own count, headers included.
struct LinkCounters {
  std::uint64_t sent_bytes = 0;
  std::uint64_t sent_packets = 0;
  std::uint64_t received_bytes = 0;
  std::uint64_t received_packets = 0;
  std::uint64_t sent_again = 0;  // TCP segments that the host sent another time; of a switch none

  // What was sent since without Ethernet, IP and TCP headers, 66 bytes of each packet that the
  // kernel handed to the link, large segments counting as one, and without what TCP sent again: a
  // stalled machine makes it take packets for lost.
  double payload_sent_since(const LinkCounters& before) const {
    constexpr double kHeaderBytes = 66;
    constexpr double kSegmentBytes = 1448;
    return static_cast<double>(sent_bytes - before.sent_bytes) -
           kHeaderBytes * static_cast<double>(sent_packets - before.sent_packets) -
           kSegmentBytes * static_cast<double>(sent_again - before.sent_again);
  }
};

class ClusterBox {
 public:
  // Or why there can be none here: no root, no namespaces, no traffic shaping.
  static Result<ClusterBox> make(const BoxOptions& options);
  ~ClusterBox();
  ClusterBox(ClusterBox&& other) noexcept;
  ClusterBox& operator=(ClusterBox&&) = delete;

  int hosts() const { return options_.hosts; }
  std::string address(int host) const;

  LinkCounters counters(int host) const;
  // Of a group's link to the switch above all groups; REQUIRES: there are several.
  int groups() const {
    return options_.groups.empty() ? 1 : static_cast<int>(options_.groups.size());
  }
  LinkCounters uplink_counters(int group) const;

  // Gives a host's link another rate.
  Status set_rate(int host, int mbit_per_s);
  // Takes a host's link down, and up again.
  Status cut(int host);
  Status mend(int host);

  // As `ip netns` knows that host.
  std::string host_name(int host) const;

  // Takes this process to that host. False: it cannot go there.
  bool enter(int host) const;

  // A process on that host; its exit status is what the body returns. It dies with its parent.
  pid_t start(int host, const std::function<int()>& body) const;

 private:
  explicit ClusterBox(const BoxOptions& options);
  Status build();
  Status add_host(int host, int group);
  int group_of(int host) const;
  static LinkCounters counters_of(const std::string& name, const std::string& device);
  static pid_t start_in(const std::string& name, const std::function<int()>& body);
  std::string switch_name(int group) const;  // -1: the one above all groups

  BoxOptions options_;
  std::string prefix_;
  base::Fd janitor_;                     // removes all when it is closed, as it is by any death
  std::vector<std::string> namespaces_;  // made so far
};

}  // namespace sluice::box
