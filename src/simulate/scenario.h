// scenario.h - what is simulated: a cluster, its conditions, and changes: "between.gbit_per_s=400".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cluster/cluster.h"
#include "simulate/flow_network.h"
#include "simulate/straggler.h"
#include "sluice/status.h"

namespace sluice::simulate {

inline constexpr int kMostRanks = 1 << 13;  // of a simulation

struct ClusterScenario {
  cluster::Cluster cluster;
  Conditions conditions;
  int grid_rows = 0;                // rows of ranks in a grid; 0: the nodes are the rows
  double jitter_s = 0;              // each rank starts up to this much late, at random
  std::uint64_t seed = 1;           // of the jitter
  std::optional<Spread> spread;     // of step times; none: that of the cluster's devices
  std::vector<std::string> recipe;  // the recipe's settings: "theta=1M"
};

Spread spread_of(const ClusterScenario& scenario);

// The grid of grid_rows; empty: none. Fails if the ranks do not fill the rows evenly.
Result<std::vector<int>> grid_of(const ClusterScenario& scenario, int ranks);

// All keys that apply() knows, without those of recipes.
std::vector<std::string_view> what_if_keys();

// Applies each key=value. With a recipe, other keys go to ClusterScenario::recipe. Without one they
// are an error that suggests the nearest key.
Status apply(ClusterScenario& scenario, const std::vector<std::string>& settings, bool with_recipe);

}  // namespace sluice::simulate
