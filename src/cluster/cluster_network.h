// cluster_network.h - the tables of a cluster file that only the simulator reads.
#pragma once

#include <string>

#include "base/toml.h"
#include "cluster/device_speed.h"
#include "cluster/network_shape.h"
#include "sluice/status.h"

namespace sluice::cluster {

// [network]; a slip is named with its line.
Result<NetworkShape> read_network(const toml::table& table, int ranks_per_node,
                                  const std::string& source);

// One [[speed]].
Result<DeviceSpeed> read_speed(const toml::table& table, const std::string& source);

}  // namespace sluice::cluster
