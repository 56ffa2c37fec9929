// flow_network.h - a cluster's links during a run, and how flows share them.
//
// Flows share links max-min fairly: to give a flow more, one would have to take it from a flow that
// has the same rate or less. To find the rates, all flows are raised alike until a link is full.
// The flows that cross it are fixed, and the others continue.
//
// Thread-safety: a FlowNetwork is immutable once built; a FairShare belongs to one thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "algorithms/fabric.h"
#include "cluster/cluster.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::simulate {

using algorithms::LinkId;

// How the network differs from the cluster's file during a run. Nodes are numbered from 0.
struct Conditions {
  double background = 0;  // fraction of every link between nodes that other jobs use
  int slow_node = -1;  // node whose links to other nodes have `slow_part` of their rate; -1: none
  double slow_part = 1;
};

class FlowNetwork {
 public:
  // `algorithm` may have links of its own, such as measured ones.
  static Result<FlowNetwork> of(const cluster::Cluster& cluster, int ranks,
                                const Conditions& conditions = {}, std::string_view algorithm = {});

  int ranks() const { return fabric_.ranks(); }
  int nodes() const { return fabric_.nodes(); }
  std::span<const double> bytes_per_s() const { return bytes_per_s_; }
  double reduce_s_per_byte() const { return reduce_s_per_byte_; }

  // Appends the links from one rank to another and returns the latency of the route.
  double route(Rank from, Rank to, std::vector<LinkId>& links) const {
    return fabric_.route(from, to, links);
  }
  // The least time between such a message and the sender's next one.
  double gap_s(Rank from, Rank to) const { return fabric_.gap_s(from, to); }

  // The rate of a node, or of a rank if the ranks fill only one node.
  double node_bytes_per_s() const { return node_bytes_per_s_; }

 private:
  explicit FlowNetwork(algorithms::Fabric fabric) : fabric_{std::move(fabric)} {}

  algorithms::Fabric fabric_;
  std::vector<double> bytes_per_s_;
  double reduce_s_per_byte_ = 0;
  double node_bytes_per_s_ = 0;
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
