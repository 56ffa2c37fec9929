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

struct SLUICE_API Cluster {
  std::string name;
  int ranks_per_node = 1;
  CostConstants constants;
  std::vector<std::vector<std::string>> switches;  // hosts behind each switch, by name or address
  // The achieved fraction of the NICs' rate, which is included in constants.between.
  double between_efficiency = 1;
  // Only the simulator uses these members.
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

// The text of a file from which parse_cluster() reads the same links and network. It has no speeds.
std::string show_cluster(const Cluster& cluster);

}  // namespace sluice::cluster
