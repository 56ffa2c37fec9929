// fabrics.h - small clusters for tests, whose figures are easy to compute by hand.
#pragma once

#include <string>

#include "cluster/cluster.h"

namespace sluice::simulate {

// Every rank is a node of one switch: 1 GB/s, 10 us. Reducing takes no time.
inline cluster::Cluster flat_fabric() {
  cluster::Cluster cluster;
  cluster.name = "flat";
  cluster.constants.between = {10e-6, 1e9};
  cluster.constants.inside = {10e-6, 1e9};
  return cluster;
}

// Nodes of `ranks`: 10 GB/s and 2 us inside, 1 GB/s and 10 us between.
inline cluster::Cluster noded_fabric(int ranks) {
  cluster::Cluster cluster = flat_fabric();
  cluster.name = "noded";
  cluster.ranks_per_node = ranks;
  cluster.constants.inside = {2e-6, 10e9};
  return cluster;
}

// Switches of `nodes` nodes of one rank, with thin uplinks.
inline cluster::Cluster thin_tree(int nodes, double oversubscription) {
  cluster::Cluster cluster = flat_fabric();
  cluster.name = "thin";
  cluster.constants.network.levels = {{.nodes = nodes, .oversubscription = oversubscription}};
  return cluster;
}

}  // namespace sluice::simulate
