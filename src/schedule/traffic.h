// traffic.h - computes the load of each step from its messages.
#pragma once

#include <utility>
#include <vector>

#include "sluice/analysis/cost.h"

namespace sluice::schedule {

// Adds up the messages of a step by rank, port and node, and keeps the busiest of each.
class Traffic final : public TrafficSink {
 public:
  explicit Traffic(const Topology& topology);

  void message(Rank from, Rank to, double share) override;
  void reduce(Rank rank, double share) override;
  void end_step(int repeat) override;

  Load take() { return std::move(load_); }

 private:
  struct Port {
    int messages_out = 0, messages_in = 0;
    double out = 0, in = 0;
  };
  std::vector<int> node_of_;
  std::vector<Port> inside_;     // of each rank
  std::vector<Port> between_;    // messages of each rank
  std::vector<Port> node_link_;  // bytes of each node
  std::vector<double> reduced_;  // of each rank
  Load load_;
};

// Reports the messages and sums of a schedule, step by step.
void count_traffic(const Schedule& schedule, TrafficSink& sink);

}  // namespace sluice::schedule
