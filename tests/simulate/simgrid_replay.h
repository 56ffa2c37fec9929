// simgrid_replay.h - a schedule run by SimGrid, for a second opinion on simulated times.
//
// SimGrid's plain CM02 model, without its correction factors: links are shared max-min fairly and
// a message pays the latency of its way. The fabric is built anew from the cluster's numbers, and
// the order of operations from the rules of docs/execution-model.md: nothing of src/simulate is
// used.
#pragma once

#include <cstdint>

#include "cluster/cluster.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::simulate {

// Whether this build has it; else simgrid_replay is no_simgrid_replay.cc.
bool has_simgrid();

// When a rank may send its peer the next message. SimGrid's own blocking messages hold it up until
// the last one has arrived; on a real link it follows at once.
enum class NextMessage : std::uint8_t { OnceLeft, OnceArrived };

// Seconds until all ranks are done. REQUIRES: has_simgrid(); every rank of the cluster is a node,
// with one level of switches without latency of its own; adding up takes no time; the schedule has
// no local operations.
Result<double> replay_on_simgrid(const Schedule& schedule, const cluster::Cluster& cluster,
                                 double bytes, NextMessage next);

}  // namespace sluice::simulate
