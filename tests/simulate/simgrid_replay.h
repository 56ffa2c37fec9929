// simgrid_replay.h - runs a schedule in SimGrid, to check simulated times.
//
// It uses SimGrid's plain CM02 model without correction factors: messages share links max-min
// fairly and pay the latency of their route. The network is built from the cluster's numbers, and
// the order of operations from the rules of docs/execution-model.md. It uses no code of
// src/simulate.
#pragma once

#include <cstdint>

#include "cluster/cluster.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::simulate {

// Whether this build has SimGrid; no_simgrid_replay.cc replaces simgrid_replay.cc if not.
bool has_simgrid();

// When a rank may send the next message to a peer. SimGrid's blocking messages wait until the last
// one has arrived; on a real link the next one follows at once.
enum class NextMessage : std::uint8_t { OnceLeft, OnceArrived };

// The seconds until all ranks are done. REQUIRES: has_simgrid(); every rank is a node; there is one
// level of switches, without latency; reducing takes no time; the schedule has no local operations.
Result<double> replay_on_simgrid(const Schedule& schedule, const cluster::Cluster& cluster,
                                 double bytes, NextMessage next);

}  // namespace sluice::simulate
