// step_run.h - a schedule of thousands of ranks on a network, step by step.
//
// The rates of a step's messages are what max-min fairness gives them when all of the step go at
// once; an equal set of senders and receivers is worked out once, however often it comes back. With
// these rates times follow the data as in event_run.h: a message goes once its chunks are there on
// both sides and the one before it between the same two ranks has left, or, where these had none in
// the step before, once their ports are done with that step. So ranks run ahead of each other,
// trees are pipelined, and a chunk pays the latency of its own way. Where messages do not share
// links, or all of a step start together, the result is that of event_run.h; tests hold it to that,
// and to 3% on all cluster files but where a ring's short messages share host memory: there it is
// up to a third too slow.
#pragma once

#include <vector>

#include "simulate/event_run.h"
#include "simulate/step_table.h"

namespace sluice::simulate {

// When each rank is done.
std::vector<double> run_steps(const StepTable& table, const FlowNetwork& network,
                              const RunOptions& options);

}  // namespace sluice::simulate
