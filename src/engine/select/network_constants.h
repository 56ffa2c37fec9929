// network_constants.h - what messages between nodes cost, measured as a job starts.
#pragma once

#include "sluice/communicator.h"
#include "sluice/cost.h"

namespace sluice::engine {

// Times a ring long enough to tell the bandwidth, and one short all-reduce of every algorithm.
// Every rank must call it; all return rank 0's figures.
CostConstants measure_network(Communicator& communicator, const Topology& topology);

// Rank 0's links, at every rank.
CostConstants hand_out_links(Communicator& communicator, const CostConstants& constants);

}  // namespace sluice::engine
