// collective.h - how long a collective takes on a cluster.
//
// The schedule is the one the engine runs: its Programs, on a network built from the cluster's
// file. Small ones are run event by event, large ones step by step; both are in this folder.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "simulate/dataflow.h"
#include "simulate/event_run.h"
#include "simulate/flow_network.h"
#include "simulate/step_table.h"
#include "sluice/algorithms.h"

namespace sluice::simulate {

enum class RunMethod : std::uint8_t { Automatic, Events, Steps };

// Keeps the schedules it has unfolded, so that a bucket after the first costs only its run.
// Thread-safety: one thread at a time.
class CollectiveSimulator {
 public:
  static Result<CollectiveSimulator> on(const cluster::Cluster& cluster, int ranks,
                                        const Conditions& conditions = {});

  const FlowNetwork& network() const { return network_; }
  const Topology& topology() const { return topology_; }

  // When each rank is done. REQUIRES: the shape is complete and has the network's ranks. A time
  // that cannot be is refused.
  Result<std::vector<double>> run(const Algorithm& algorithm, const Shape& shape,
                                  const RunOptions& options,
                                  RunMethod method = RunMethod::Automatic);

 private:
  using Unfolded = std::variant<Dataflow, StepTable>;
  CollectiveSimulator(FlowNetwork network, FlowNetwork tree_network, Topology topology)
      : network_{std::move(network)},
        tree_network_{std::move(tree_network)},
        topology_{std::move(topology)} {}
  Result<const Unfolded*> unfold(const Algorithm& algorithm, const Shape& shape, RunMethod method);

  FlowNetwork network_;
  FlowNetwork tree_network_;
  Topology topology_;
  std::map<std::string, Unfolded> unfolded_;
};

}  // namespace sluice::simulate
