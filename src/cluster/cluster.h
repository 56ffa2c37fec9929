// cluster.h - the links of a machine room, from a TOML file.
//
// docs/clusters.md describes the file. The clusters of clusters/*.toml are part of the library, by
// name; any other is read from a path.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "cluster/device_speed.h"
#include "cluster/network_shape.h"
#include "sluice/analysis/cost.h"
#include "sluice/status.h"

namespace sluice::cluster {

struct Cluster {
  std::string name;
  int ranks_per_node = 1;
  CostConstants constants;
  std::vector<std::vector<std::string>> switches;  // hosts behind each, by name or address
  // For the simulator alone.
  double between_efficiency = 1;  // what is left of the NICs' rate in constants.between
  NetworkShape network;
  std::string device;               // what a rank computes on
  bool steady = false;              // devices of one clock: no rank lags behind the others
  std::vector<DeviceSpeed> speeds;  // of that device

  // Which switch a host is behind; 0 where none is told, and one past the last for other hosts.
  int switch_of(std::string_view host, std::string_view address) const;
  // `ranks` on as few nodes as hold them, the last one perhaps not full.
  Topology topology(int ranks) const;
};

std::vector<std::string_view> built_in_clusters();

// A built-in name, or the path of a file. A wrong file is named with the line.
Result<Cluster> find_cluster(const std::string& name_or_path);

// `source` names the text in messages.
Result<Cluster> parse_cluster(std::string_view toml, const std::string& source);

// The file that parse_cluster() reads back to the same links; the network and the speeds, which
// nothing here measures, are not in it.
std::string show_cluster(const Cluster& cluster);

}  // namespace sluice::cluster
