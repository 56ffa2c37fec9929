// cost.h - predicts how long a schedule takes, by the port model.
//
// In each link class (inside a node, between nodes), a step takes alpha for each message of the
// busiest rank plus the bytes of the busiest port over beta. Ports are full duplex: in and out are
// counted separately, and the larger one counts. Inside a node, every rank has a port; between
// nodes, the node has one port, which its ranks share. The classes work at the same time, so the
// step takes as long as the slower one. All transfers from one rank to another in a step are one
// message. The reduction costs gamma per byte.
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
  double latency_s = 0;                // alpha
  double bandwidth_bytes_per_s = 1e9;  // beta: one direction of a port
  // The part of alpha that is hidden behind the bytes, up to 1. A traffic-shaped link, such as that
  // of a virtual machine, limits only the mean rate: after an idle alpha it sends faster.
  double overlap = 0;
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

  // The measurement of an algorithm, or null.
  const MeasuredLink* measured_for(std::string_view name) const;
  // These constants, with links and reduction replaced by the algorithm's measurement, if any.
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
};

// The load of a schedule, counted step by step.
SLUICE_API Load count_load(const Schedule& schedule, const Topology& topology);

// The seconds that a collective with this load takes on a buffer of `bytes` bytes.
SLUICE_API double predict_seconds(const Load& load, double bytes, const CostConstants& constants);

}  // namespace sluice
