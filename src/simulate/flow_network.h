// flow_network.h - a cluster's links as a graph: which of them a message crosses, and how late it
// is.
//
// Every link has two directions that do not disturb each other; each is a link of its own here.
// Inside a node a message crosses its sender's and its receiver's port; between nodes their NICs
// and the uplinks on the way, or the links of a torus, dimension by dimension and the short way
// round. Latency belongs to the way, not to a link: it takes none of a link's time.
//
// Thread-safety: immutable once built.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::simulate {

// What differs from the cluster's file on the day. Nodes are counted from 0.
struct Conditions {
  double background = 0;  // part of every link between nodes that others use
  int slow_node = -1;     // whose links to others reach `slow_part` of their rate; -1: none
  double slow_part = 1;
};

using LinkId = std::int32_t;

class FlowNetwork {
 public:
  // `trees`: messages have the latency of trees, where the cluster's file tells it apart.
  static Result<FlowNetwork> of(const cluster::Cluster& cluster, int ranks,
                                const Conditions& conditions = {}, bool trees = false);

  int ranks() const { return ranks_; }
  std::span<const double> bytes_per_s() const { return bytes_per_s_; }
  double reduce_s_per_byte() const { return reduce_s_per_byte_; }

  // Appends the links from one rank to another; the latency of the way is returned.
  double route(Rank from, Rank to, std::vector<LinkId>& links) const;

  // What a whole node, or a rank of a cluster that is one node, can send.
  double node_bytes_per_s() const { return node_bytes_per_s_; }
  int nodes() const { return nodes_; }

 private:
  LinkId add(int count, double bytes_per_s);
  void add_switched(const cluster::Cluster& cluster, const Conditions& conditions);
  void add_torus(const cluster::Cluster& cluster, const Conditions& conditions);
  std::size_t torus_link(int node, int dimension, bool up) const;
  double torus_route(int from, int to, std::vector<LinkId>& links) const;
  int nic_of(Rank rank) const;

  int ranks_ = 0;
  int ranks_per_node_ = 1;
  int nodes_ = 1;
  cluster::NetworkShape shape_;
  std::vector<double> bytes_per_s_;
  double reduce_s_per_byte_ = 0;
  double inside_latency_s_ = 0;
  double between_latency_s_ = 0;
  double node_bytes_per_s_ = 0;

  // Where each kind of link begins: outwards, then inwards; -1: there is none.
  LinkId ports_ = -1;
  LinkId nics_ = -1;
  LinkId staging_ = -1;          // one a node, both directions
  LinkId bridge_ = -1;           // likewise
  std::vector<LinkId> uplinks_;  // a level each
  LinkId torus_ = -1;            // two a node and dimension: up and down
};

}  // namespace sluice::simulate
