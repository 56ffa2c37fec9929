// event_run.h - a schedule on a network, event by event.
//
// dataflow_of() turns a schedule into a graph of operations: sends, receives with all their
// messages, and local operations. Two operations of a rank run in program order if they touch the
// same chunk of the same buffer and at least one of them writes it. docs/execution-model.md has the
// rules.
//
// run_events() simulates the graph. A message starts once the predecessors of its send and of its
// receive are done and the previous message between the same two ranks has left. It shares the
// links of its route max-min fairly with all messages in flight, and arrives its latency after its
// last byte has left. A rank prepares its messages one gap apart; a message that waits for that
// leaves so much later. A receive reduces once all its messages have arrived.
//
// This is the exact reference. Its run time grows with the number of events; step_run.h is for
// thousands of ranks.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "simulate/flow_network.h"
#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::simulate {

struct DataflowMessage {
  Rank from = 0;
  Rank to = 0;
  double share = 0;           // of the buffer
  std::uint32_t send = 0;     // operation
  std::uint32_t receive = 0;  // operation
};

struct DataflowOperation {
  Rank rank = 0;
  std::uint32_t waits_for = 0;  // number of predecessors
  std::uint32_t messages = 0;   // messages that a receive waits for
  double added = 0;  // share of the buffer that it reduces once its messages have arrived
};

struct Dataflow {
  std::vector<DataflowOperation> operations;
  std::vector<DataflowMessage> messages;  // pair by pair of ranks, in order within a pair
  std::vector<std::uint32_t> followers;
  std::vector<std::uint32_t> follower_ends;  // end of each operation's part of `followers`

  std::span<const std::uint32_t> followers_of(std::uint32_t operation) const {
    const std::uint32_t begin = operation == 0 ? 0 : follower_ends[operation - 1];
    return std::span{followers}.subspan(begin, follower_ends[operation] - begin);
  }
};

// Fails if the sends and receives of the schedule do not match; verify() reports the details.
Result<Dataflow> dataflow_of(const Schedule& schedule);

struct RunOptions {
  double bytes = 0;
  std::vector<double> starts_s;  // when each rank starts; empty: all at 0
};

// The time at which each rank is done.
std::vector<double> run_events(const Dataflow& flow, const FlowNetwork& network,
                               const RunOptions& options);

}  // namespace sluice::simulate
