// event_run.h - a schedule on a network, event by event.
//
// A message goes once its send's and its receive's predecessors are done and the one before it
// between the same two ranks has left; it then shares the links of its way max-min fairly with all
// that go at that moment, and arrives its latency after its last byte has left. What must be added
// up takes its time once everything has arrived. Lanes run the same schedule on their parts of the
// buffer and know nothing of each other but the links.
//
// This is the simulator's own reference: exact, and as slow as there are events. step_run.h is for
// thousands of ranks.
#pragma once

#include <vector>

#include "simulate/dataflow.h"
#include "simulate/flow_network.h"

namespace sluice::simulate {

struct RunOptions {
  double bytes = 0;
  int lanes = 1;
  std::vector<double> starts_s;  // when each rank comes to it; empty: all at 0
};

// When each rank is done.
std::vector<double> run_events(const Dataflow& flow, const FlowNetwork& network,
                               const RunOptions& options);

}  // namespace sluice::simulate
