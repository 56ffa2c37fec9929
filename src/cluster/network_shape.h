// network_shape.h - how the links of a cluster hang together.
//
// The cost model needs none of it: it knows a link inside a node and one between nodes. What shares
// a link with what, and what lies between two nodes, is for the simulator. docs/clusters.md
// describes the file's [network] table.
#pragma once

#include <vector>

namespace sluice::cluster {

// Groups of nodes behind one switch, or behind switches that act as one. Their links upwards carry
// what the nodes could send, divided by the oversubscription: 1 is a full fat tree, 4 a thin one.
struct SwitchLevel {
  int nodes = 1;  // of a group
  double oversubscription = 1;
  double latency_s = 0;  // that a message pays once more on its way up, and on its way down
};

struct NetworkShape {
  int nics = 1;  // of a node; the link between nodes is all of them together
  // A message is spread over all NICs of its node, as collectives with a channel for each do; else
  // it takes its device's own.
  bool striped = true;
  std::vector<int> nic_of;  // which one each device of a node uses; empty: dealt out evenly
  // What all messages of a node share: host memory that they are staged through, and what those
  // between devices cross besides. 0: nothing, messages go directly.
  double staging_bytes_per_s = 0;
  double bridge_bytes_per_s = 0;
  double tree_latency_s = 0;        // of a message in trees, where it is not that in rings; else 0
  std::vector<SwitchLevel> levels;  // from the nodes up; above the last one all are joined
  std::vector<int> torus;           // its extents, a node at each point; empty: switches
  double hop_latency_s = 0;         // of each further hop in a torus
};

}  // namespace sluice::cluster
