// cluster.h - machines: their links, their network and the speeds of their devices.
//
// docs/clusters.md describes the file. The files of clusters/ are part of the library and are known
// by name; any other cluster is read from a path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/device_speed.h"
#include "sluice/analysis/cost.h"
#include "sluice/status.h"
#include "sluice/version.h"

namespace sluice::cluster {

// Groups of nodes, each behind one switch or behind several that act as one. A group's uplink
// carries the traffic of its nodes divided by the oversubscription: 1 is a full fat tree, 4 a thin
// one.
struct SwitchLevel {
  int nodes = 1;  // of a group
  double oversubscription = 1;
  double latency_s = 0;  // added when a message goes up, and again when it goes down
};

// The file's [network] table: the links between nodes and how messages share them. Only the
// simulator reads it. The cost model has just two links, one inside a node and one between nodes.
struct NetworkShape {
  int nics = 1;  // of a node; constants.between is all of them together
  // A message uses all NICs of its node, as collectives with one channel per NIC do. Otherwise it
  // uses its device's own NIC.
  bool striped = true;
  std::vector<int> nic_of;  // NIC of each device of a node; empty: distributed evenly
  // Links that all messages of a node share: the host memory for staging, and the bridge between
  // the devices of the node. 0: none.
  double staging_bytes_per_s = 0;
  double bridge_bytes_per_s = 0;
  double tree_latency_s = 0;        // between nodes, in trees; 0: as in other algorithms
  std::vector<SwitchLevel> levels;  // from the nodes up; one switch joins all groups of the last
  std::vector<int> torus;           // extents of a torus with a node at each point; empty: switches
  double hop_latency_s = 0;         // latency of each further hop in a torus
};

struct SLUICE_API Cluster {
  std::string name;
  int ranks_per_node = 1;
  CostConstants constants;
  std::vector<std::vector<std::string>> switches;  // hosts behind each switch, by name or address
  // Only the simulator uses these members.
  double between_efficiency =
      1;  // achieved fraction of the NICs' rate, included in constants.between
  NetworkShape network;
  std::string device;               // the device of a rank
  bool steady = false;              // the devices share a clock, so there are no stragglers
  std::vector<DeviceSpeed> speeds;  // of that device

  // The number of the switch that a host is behind. 0 if the cluster names no switches. For an
  // unknown host, one past the last switch.
  int switch_of(std::string_view host, std::string_view address) const;
  // `ranks` on the fewest nodes; the last node may be partly filled.
  Topology topology(int ranks) const;
};

std::vector<std::string_view> built_in_clusters();

// Finds a built-in cluster by name, or reads a file. An error names the file and the line.
SLUICE_API Result<Cluster> find_cluster(const std::string& name_or_path);

// `source` is the name of the text in messages.
Result<Cluster> parse_cluster(std::string_view toml, const std::string& source);

// The text of a file from which parse_cluster() reads the same links. It has no network and no
// speeds, because Sluice does not measure them.
std::string show_cluster(const Cluster& cluster);

}  // namespace sluice::cluster
