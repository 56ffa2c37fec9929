// fabric.h - the links of a cluster, and the route of a message over them.
//
// The two directions of a link are independent, so each is a link of its own here. Inside a node a
// message crosses the ports of its sender and its receiver. Between nodes it crosses their NICs and
// the uplinks between them; in a torus it takes the shorter way round in each dimension. Latency
// belongs to a route, not to a link: it occupies no link.
//
// The cost model and the simulator read the same Fabric. Thread-safety: immutable.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sluice/analysis/cost.h"
#include "sluice/schedule.h"
#include "sluice/version.h"

namespace sluice::algorithms {

using LinkId = std::int32_t;

class SLUICE_API Fabric {
 public:
  Fabric(const CostConstants& constants, const Topology& topology);

  int ranks() const { return static_cast<int>(node_of_.size()); }
  int nodes() const { return nodes_; }
  std::span<const double> bytes_per_s() const { return bytes_per_s_; }
  // Links from this one on are between nodes.
  LinkId first_between() const { return first_between_; }
  // The links of a node to the others, in both directions.
  std::vector<LinkId> links_of(int node) const;
  // The rate of a node's links together, or of a rank if the ranks fill only one node.
  double node_bytes_per_s() const { return node_bytes_per_s_; }

  // Appends the links from one rank to another and returns the latency of the route.
  double route(Rank from, Rank to, std::vector<LinkId>& links) const;
  // The least time between such a message and the sender's next one.
  double gap_s(Rank from, Rank to) const;

 private:
  LinkId add(int count, double bytes_per_s);
  void add_switched(const CostConstants& constants);
  void add_torus(const CostConstants& constants);
  LinkId torus_link(int node, int dimension, bool up) const;
  double torus_route(int from, int to, std::vector<LinkId>& links) const;
  LinkId nic_of(Rank rank) const;
  bool same_node(Rank a, Rank b) const {
    return node_of_[static_cast<std::size_t>(a)] == node_of_[static_cast<std::size_t>(b)];
  }

  NetworkShape shape_;
  Link inside_, between_;
  int nodes_ = 1;
  int nics_ = 1;                // of a node
  std::vector<int> node_of_;    // of each rank
  std::vector<LinkId> nic_of_;  // of each rank: its number among all NICs
  std::vector<double> bytes_per_s_;
  double node_bytes_per_s_ = 0;

  // The first link of each kind; -1: none. The outgoing links come first, then the incoming ones.
  LinkId ports_ = -1;
  LinkId staging_ = -1;  // one per node, for both directions
  LinkId bridge_ = -1;   // one per node, for both directions
  LinkId first_between_ = 0;
  LinkId first_nic_ = -1;
  std::vector<LinkId> uplinks_;  // by level
  LinkId torus_ = -1;            // two per node and dimension: up, then down
};

}  // namespace sluice::algorithms
