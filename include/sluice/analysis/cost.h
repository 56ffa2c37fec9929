// cost.h - what a schedule costs under the port model.
//
// A step takes, in each link class (inside a node, between nodes), alpha for every message of the
// busiest rank plus the bytes of the busiest port over beta; ports are full duplex, so in and out
// are counted apart and the larger one is paid. Inside a node every rank has a port; between nodes
// the node has one, which its ranks share. The classes work at the same time: the step takes the
// slower one. All transfers from one rank to another in a step are one message. The reduction costs
// gamma a byte; L lanes pay every alpha L times and hide all but 1/L of the reduction.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sluice/schedule.h"

namespace sluice {

struct Link {
  double latency_s = 0;                // alpha
  double bandwidth_bytes_per_s = 1e9;  // beta, one direction of a port
  // The part of alpha that passes while bytes are paid for: 1 where a link lends out what it has
  // not used and only the mean of its rate counts, as the shaped links of virtual machines do.
  double overlap = 0;
};

// How fast an algorithm's messages went, its reduction included.
struct MeasuredLink {
  std::string algorithm;
  Link inside;
  std::optional<Link> between;
  std::int64_t most_bytes = std::numeric_limits<std::int64_t>::max();  // beyond, it does not hold
};

struct CostConstants {
  Link inside;
  Link between;
  double reduce_s_per_byte = 0;  // gamma
  // Where an algorithm was measured it is priced by that: a transport that combines in place, or
  // hands out results as it makes them, is not equally kind to all.
  std::vector<MeasuredLink> measured;

  // What was measured for the algorithm; null: nothing.
  const MeasuredLink* measured_for(std::string_view name) const;
  // With links and the reduction as they were measured for the algorithm, if they were.
  CostConstants for_algorithm(std::string_view name) const;
};

// Which node each rank is on: ranks of one node are consecutive.
struct Topology {
  std::vector<int> nodes;  // ranks of each node

  static Topology flat(int ranks);  // every rank a node of its own
};

// What a step puts on one link class. Bytes are shares of the buffer.
struct ClassLoad {
  int messages = 0;  // of the busiest rank, the larger of out and in
  double bytes = 0;  // of the busiest port, the larger of out and in
};

// `repeat` steps in a row with the same load.
struct StepLoad {
  int repeat = 1;
  ClassLoad inside;
  ClassLoad between;
  double reduced = 0;  // bytes that the busiest rank adds up, as a share of the buffer
};

using Load = std::vector<StepLoad>;

// Hears of the messages of one step after another; hears a step repeated rather than told again.
class TrafficSink {
 public:
  virtual ~TrafficSink() = default;
  virtual void message(Rank from, Rank to, double share) = 0;
  virtual void reduce(Rank rank, double share) = 0;  // bytes that the rank adds up
  virtual void end_step(int repeat) = 0;
};

// Counts what a schedule really does, step by step.
Load count_load(const Schedule& schedule, const Topology& topology);

double predict_seconds(const Load& load, double bytes, int lanes, const CostConstants& constants);

}  // namespace sluice
