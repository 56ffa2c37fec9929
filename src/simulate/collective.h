// collective.h - how long a collective takes on a cluster.
//
// It simulates the schedule that the engine would run, on a network built from the cluster's file.
// Small schedules run event by event, large ones step by step.
//
// A wrong simulator most often breaks a bound that is easy to check. So every result is checked
// against such bounds, and breaking one is an error.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "simulate/scenario.h"
#include "simulate/step_run.h"
#include "sluice/algorithms.h"
#include "sluice/analysis/select.h"

namespace sluice::simulate {

enum class RunMethod : std::uint8_t { Automatic, Events, Steps };

// Keeps the schedules that it has prepared, so a second bucket costs only its run.
// Thread-safety: one thread at a time.
class CollectiveSimulator {
 public:
  static Result<CollectiveSimulator> on(const cluster::Cluster& cluster, int ranks,
                                        const Conditions& conditions = {});

  const FlowNetwork& network() const { return network_; }
  const Topology& topology() const { return topology_; }

  // The time at which each rank is done. Fails if the times are impossible.
  // REQUIRES: the shape is complete and has the network's ranks.
  Result<std::vector<double>> run(const Algorithm& algorithm, const Shape& shape,
                                  const RunOptions& options,
                                  RunMethod method = RunMethod::Automatic);

 private:
  using PreparedSchedule = std::variant<Dataflow, StepTable>;
  CollectiveSimulator(const cluster::Cluster& cluster, const Conditions& conditions,
                      FlowNetwork network, Topology topology)
      : cluster_{cluster},
        conditions_{conditions},
        network_{std::move(network)},
        topology_{std::move(topology)} {}
  // The network as it is for one algorithm.
  Result<const FlowNetwork*> network_for(const Algorithm& algorithm);
  Result<const PreparedSchedule*> prepare(const Algorithm& algorithm, const Shape& shape,
                                          RunMethod method);

  cluster::Cluster cluster_;
  Conditions conditions_;
  FlowNetwork network_;
  std::map<std::string_view, FlowNetwork> networks_;  // by algorithm
  Topology topology_;
  std::map<std::string, PreparedSchedule> prepared_;
};

struct AllReduceOptions {
  std::int64_t bytes = 0;
  std::string algorithm;  // empty: the engine's choice; "all": every algorithm
  int segments = 0;       // of a tree; 0: the engine's choice
};

struct AllReduceTime {
  Candidate candidate;
  int ranks = 0;
  std::size_t nodes = 0;
  double seconds = 0;
  double bus_bytes_per_s = 0;
};

// The error for an algorithm that the selector does not offer.
Status no_candidate(std::string_view algorithm, const cluster::Cluster& cluster);

// The fastest algorithm comes first.
Result<std::vector<AllReduceTime>> simulate_all_reduce(const ClusterScenario& scenario, int ranks,
                                                       const AllReduceOptions& options);

// An all-reduce over m nodes (or over m ranks of one node) sends at least 2(m-1)/m of the buffer
// from each, so its bus bandwidth cannot exceed the link's.
Status check_all_reduce(const FlowNetwork& network, double bytes, double seconds);

struct ScalePoint {
  int ranks = 0;
  double seconds = 0;
};
// An algorithm cannot take exactly the same time on twice the ranks.
Status check_scaling(const std::vector<ScalePoint>& points);

}  // namespace sluice::simulate
