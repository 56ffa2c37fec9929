// two_groups.h - an all-reduce in a box: two groups of hosts behind switches, joined by an uplink.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/communicator.h"
#include "tests/box/box_ranks.h"

namespace sluice::bench {

struct TwoGroupsOptions {
  int hosts = 4;  // of a group
  int mbit_per_s = 100;
  int uplink_mbit_per_s = 100;
};

class TwoGroups {
 public:
  // Throws where there can be no such box.
  explicit TwoGroups(const TwoGroupsOptions& options);

  // Seconds of so many all-reduces, after another of their kind, at the slowest rank. The results
  // are checked.
  std::vector<double> times(const std::string& algorithm, std::int64_t bytes, int repeats) const;

 private:
  box::ClusterBox cluster_;
  std::vector<int> hosts_;
};

}  // namespace sluice::bench
