// what_if.h - a cluster, its condition and a recipe with something changed:
// "between.gbit_per_s=400".
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

struct WhatIf {
  cluster::Cluster cluster;
  Conditions conditions;
  int lanes = 1;
  int grid_rows = 0;       // of a grid that is not the nodes: so many rows of ranks; 0: the nodes
  double jitter_s = 0;     // each rank is late by as much at the most, at random
  std::uint64_t seed = 1;  // of what is random
  std::optional<Spread> spread;     // of the ranks' steps; else the one for the cluster's devices
  std::vector<std::string> recipe;  // settings that are the recipe's: "theta=1M"
};

Spread spread_of(const WhatIf& what_if);

// The grid that grid_rows asks for; empty: none. Rows that ranks do not fill evenly are refused.
Result<std::vector<int>> grid_of(const WhatIf& what_if, int ranks);

// The keys, but for those of recipes.
std::vector<std::string_view> what_if_keys();

// One key=value after the other. Keys that are none of the cluster's or the run's are left for the
// recipe; without a recipe they are refused, with the nearest key.
Status apply(WhatIf& what_if, const std::vector<std::string>& settings, bool with_recipe);

}  // namespace sluice::simulate
