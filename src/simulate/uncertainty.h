// uncertainty.h - results that cannot be, whatever the model says.
//
// A simulator that is wrong is most often wrong by a bound that anybody can check. Every figure
// goes through these before it is shown; what fails is refused with a sentence.
#pragma once

#include <vector>

#include "simulate/flow_network.h"
#include "sluice/status.h"

namespace sluice::simulate {

// In an all-reduce over m nodes each must send 2(m-1)/m of the buffer (on one node: each rank): so
// no algorithm's bus bandwidth is above its link's.
Status check_all_reduce(const FlowNetwork& network, double bytes, double seconds);

struct ScalePoint {
  int ranks = 0;
  double seconds = 0;
};
// An algorithm that takes the same time on twice the ranks has not looked at them.
Status check_scaling(const std::vector<ScalePoint>& points);

// A speed-up over one rank above the number of ranks has no reason here.
Status check_efficiency(int ranks, double efficiency);

}  // namespace sluice::simulate
