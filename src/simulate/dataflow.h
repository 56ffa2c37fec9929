// dataflow.h - a schedule as a graph: what must be done before each operation may begin.
//
// An operation is a send, a receive with all its messages, or a local one. Two of a rank that touch
// the same chunk of the same buffer, one of them writing, follow each other in program order;
// nothing else does. docs/execution-model.md has the rules.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sluice/schedule.h"
#include "sluice/status.h"

namespace sluice::simulate {

struct DataflowMessage {
  Rank from = 0;
  Rank to = 0;
  double share = 0;  // of the buffer
  std::uint32_t send = 0;
  std::uint32_t receive = 0;  // operations
};

struct DataflowOperation {
  Rank rank = 0;
  std::uint32_t waits_for = 0;  // operations
  std::uint32_t messages = 0;   // of a receive: how many must arrive
  double added = 0;             // share of the buffer that is added up once they have
};

struct Dataflow {
  std::vector<DataflowOperation> operations;
  std::vector<DataflowMessage> messages;  // those of a pair of ranks in their order
  std::vector<std::uint32_t> followers;
  std::vector<std::uint32_t> follower_ends;  // of each operation

  std::span<const std::uint32_t> followers_of(std::uint32_t operation) const {
    const std::uint32_t begin = operation == 0 ? 0 : follower_ends[operation - 1];
    return std::span{followers}.subspan(begin, follower_ends[operation] - begin);
  }
};

// A schedule whose sends and receives do not match is refused; verify() says more about it.
Result<Dataflow> dataflow_of(const Schedule& schedule);

}  // namespace sluice::simulate
