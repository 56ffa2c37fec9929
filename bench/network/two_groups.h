// two_groups.h - times all-reduces in a cluster in a box: two groups of hosts joined by an uplink.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/communicator.h"
#include "tests/box/box_ranks.h"

namespace sluice::bench {

struct TwoGroupsOptions {
  int hosts = 4;  // per group
  int mbit_per_s = 100;
  int uplink_mbit_per_s = 100;
};

class TwoGroups {
 public:
  // Throws Error if this machine cannot create the cluster.
  explicit TwoGroups(const TwoGroupsOptions& options);

  // The time in seconds of each of `repeats` all-reduces, at the slowest rank, after a warm-up. The
  // results are checked.
  std::vector<double> times(const std::string& algorithm, std::int64_t bytes, int repeats) const;

 private:
  box::ClusterBox cluster_;
  std::vector<int> hosts_;
};

}  // namespace sluice::bench
