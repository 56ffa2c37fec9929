// cost.h - predicts how long a collective takes, without running or simulating it.
//
// predict_time() follows the closed-form traffic of an algorithm over the links of a cluster. A
// rank sends in a step once it has received everything of the steps before. The messages of a step
// share the links that they cross. A message arrives its latency after its last byte has left, and
// a rank prepares its messages one gap apart. The reduction costs gamma per byte.
//
// predict_seconds() is the port model, for links that were measured with one algorithm: the
// measurement includes what the links and the engine do. In each link class (inside a node, between
// nodes), a step takes alpha for each message of the busiest rank plus the bytes of the busiest
// port over beta. Ports are full duplex: in and out are counted separately, and the larger one
// counts. Inside a node, every rank has a port; between nodes, the node has one port, which its
// ranks share. The classes work at the same time, so the step takes as long as the slower one. All
// transfers from one rank to another in a step are one message.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/version.h"

namespace sluice {

struct Link {
  double latency_s = 0;                // alpha: from the last byte's departure to its arrival
  double bandwidth_bytes_per_s = 1e9;  // beta: one direction of a port
  // The part of alpha that is hidden behind the bytes, up to 1. A traffic-shaped link, such as that
  // of a virtual machine, limits only the mean rate: after an idle alpha it sends faster.
  double overlap = 0;
  // The least time between two messages of a rank: the g of LogGP. The latency passes while a
  // message is on its way; the gap occupies its rank. The port model has no gap of its own: there,
  // alpha is the time of each message of the busiest rank.
  double gap_s = 0;
};

// Groups of nodes, each behind one switch or behind several that act as one. A group's uplink
// carries the traffic of its nodes divided by the oversubscription: 1 is a full fat tree, 4 a thin
// one.
struct SwitchLevel {
  int nodes = 1;  // of a group
  double oversubscription = 1;
  double latency_s = 0;  // added when a message goes up, and again when it goes down
};

// How messages share the links between nodes. The default is one switch that carries everything,
// and one NIC for each node.
struct NetworkShape {
  int nics = 1;  // of a node; CostConstants::between is all of them together
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
  std::vector<int> torus;           // extents of a torus with a rank at each point; empty: switches
  double hop_latency_s = 0;         // latency of each further hop in a torus
};

// Links as measured with one algorithm; its reduction is included.
struct MeasuredLink {
  std::string algorithm;
  Link inside;
  std::optional<Link> between;
  std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();  // valid up to this size
};

struct SLUICE_API CostConstants {
  Link inside;
  Link between;
  double reduce_s_per_byte = 0;  // gamma
  // The prediction for an algorithm uses its own measurement, if there is one. A transport that
  // reduces in place, or sends results while it still computes, helps some algorithms more.
  std::vector<MeasuredLink> measured;
  NetworkShape network;

  // The measurement of an algorithm, or null.
  const MeasuredLink* measured_for(std::string_view name) const;
  // These constants as they are for one algorithm: with links and reduction replaced by its
  // measurement, if there is one, and with the latency of trees in a tree.
  CostConstants for_algorithm(std::string_view name) const;
};

// The node of each rank. The ranks of a node are consecutive.
struct SLUICE_API Topology {
  std::vector<int> nodes;  // number of ranks of each node

  static Topology flat(int ranks);  // one rank on each node
};

// The load of a step on one link class. Bytes are a share of the buffer.
struct ClassLoad {
  int messages = 0;  // of the busiest rank, the larger of out and in
  double bytes = 0;  // of the busiest port, the larger of out and in
};

// `repeat` steps in a row with the same load.
struct StepLoad {
  int repeat = 1;
  ClassLoad inside;
  ClassLoad between;
  double reduced = 0;  // bytes that the busiest rank reduces, as a share of the buffer
};

using Load = std::vector<StepLoad>;

// Receives the messages of a collective, step by step. `share` is a number of bytes as a share of
// the buffer.
class SLUICE_API TrafficSink {
 public:
  virtual ~TrafficSink() = default;
  virtual void message(Rank from, Rank to, double share) = 0;
  virtual void reduce(Rank rank, double share) = 0;
  virtual void end_step(int repeat) = 0;  // ends `repeat` equal steps
  // The buffer goes through the same ranks in `pieces` equal pieces, one behind the other. If the
  // sink returns true, it receives the steps of one piece, and then end_pipeline(). Otherwise it
  // receives the steps of all pieces.
  virtual bool begin_pipeline(int pieces);
  virtual void end_pipeline() {}
};

// The load of a schedule, counted step by step.
SLUICE_API Load count_load(const Schedule& schedule, const Topology& topology);

// The seconds that a collective with this load takes on a buffer of `bytes` bytes, by the port
// model.
SLUICE_API double predict_seconds(const Load& load, double bytes, const CostConstants& constants);

// A time that depends on the bytes of the buffer.
struct TimeLine {
  double seconds = 0;
  double s_per_byte = 0;

  double at(double bytes) const { return seconds + s_per_byte * bytes; }
};

// The time of a collective by the size of its buffer: the largest of some lines.
struct TimeCurve {
  std::vector<TimeLine> lines;

  double at(double bytes) const {
    double seconds = 0;
    for (const TimeLine& line : lines)
      seconds = seconds < line.at(bytes) ? line.at(bytes) : seconds;
    return seconds;
  }
};

}  // namespace sluice
