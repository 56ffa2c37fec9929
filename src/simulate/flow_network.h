// flow_network.h - a cluster's links, the route of a message over them, and how flows share them.
//
// The two directions of a link are independent, so each is a link of its own here. Inside a node a
// message crosses the ports of its sender and its receiver. Between nodes it crosses their NICs and
// the uplinks between them; in a torus it takes the shorter way round in each dimension. Latency
// belongs to a route, not to a link: it occupies no link.
//
// Flows share links max-min fairly: to give a flow more, one would have to take it from a flow that
// has the same rate or less. To find the rates, all flows are raised alike until a link is full.
// The flows that cross it are fixed, and the others continue.
//
// Thread-safety: a FlowNetwork is immutable once built; a FairShare belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cluster/cluster.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::simulate {

// How the network differs from the cluster's file during a run. Nodes are numbered from 0.
struct Conditions {
  double background = 0;  // fraction of every link between nodes that other jobs use
  int slow_node = -1;  // node whose links to other nodes have `slow_part` of their rate; -1: none
  double slow_part = 1;
};

using LinkId = std::int32_t;

class FlowNetwork {
 public:
  // `trees`: use the latency of messages in trees, if the cluster's file has one.
  static Result<FlowNetwork> of(const cluster::Cluster& cluster, int ranks,
                                const Conditions& conditions = {}, bool trees = false);

  int ranks() const { return ranks_; }
  std::span<const double> bytes_per_s() const { return bytes_per_s_; }
  double reduce_s_per_byte() const { return reduce_s_per_byte_; }

  // Appends the links from one rank to another and returns the latency of the route.
  double route(Rank from, Rank to, std::vector<LinkId>& links) const;

  // The rate of a node, or of a rank if the ranks fill only one node.
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

  // The first link of each kind; -1: none. The outgoing links come first, then the incoming ones.
  LinkId ports_ = -1;
  LinkId nics_ = -1;
  LinkId staging_ = -1;          // one per node, for both directions
  LinkId bridge_ = -1;           // one per node, for both directions
  std::vector<LinkId> uplinks_;  // by level
  LinkId torus_ = -1;            // two per node and dimension: up, then down
};

// The routes of a set of flows, one after the other.
struct FlowSet {
  std::vector<LinkId> links;
  std::vector<std::uint32_t> ends;  // of each flow's links

  std::size_t count() const { return ends.size(); }
  void clear() {
    links.clear();
    ends.clear();
  }
  std::span<const LinkId> of(std::size_t flow) const {
    const std::uint32_t begin = flow == 0 ? 0 : ends[flow - 1];
    return std::span{links}.subspan(begin, ends[flow] - begin);
  }
};

// Computes the max-min fair rates of flows. Reuses its memory from one call to the next.
class FairShare {
 public:
  explicit FairShare(std::span<const double> bytes_per_s);

  // The rate of each flow in bytes per second. REQUIRES: every flow crosses a link.
  const std::vector<double>& rates(const FlowSet& flows);

 private:
  struct Use {
    double left = 0;          // rate that is left for its open flows
    std::uint32_t open = 0;   // flows whose rate is not fixed yet
    std::uint32_t begin = 0;  // its flows in crossing_
    std::uint32_t end = 0;
  };
  void count_uses(const FlowSet& flows);

  std::span<const double> bytes_per_s_;
  std::vector<Use> uses_;     // by link
  std::vector<LinkId> used_;  // links with open flows
  std::vector<std::uint32_t> crossing_;
  std::vector<double> rates_;
};

}  // namespace sluice::simulate
