// step_run.h - a schedule of thousands of ranks on a network, step by step.
//
// pack_steps() packs the Programs of all ranks into about two dozen bytes per message. In the
// schedule, every message must be sent and received in the same step; all built-in algorithms do
// that. Every message then depends only on earlier steps, so a run needs no graph.
//
// run_steps() gives the messages of a step the max-min fair rates that they would have if all of
// them started together. Steps with the same senders and receivers share one solution. With these
// rates, times follow the data as in event_run.h: a message starts once its chunks are ready on
// both sides and the previous message between the same two ranks has left. If these ranks had no
// message in the step before, it starts once their ports are done with that step. So ranks run
// ahead of each other, trees are pipelined, and each chunk pays the latency of its own route.
//
// If messages do not share links, or if all messages of a step start together, the result equals
// that of event_run.h. Tests check that it is within 3% on all cluster files, except for short ring
// messages that share host memory: there it is up to a third too slow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "simulate/event_run.h"
#include "sluice/algorithms.h"

namespace sluice::simulate {

struct StepReceive {
  std::int32_t step = 0;
  Rank rank = 0;
  std::int32_t first = 0;          // chunk
  std::int32_t count = 0;          // chunks
  std::uint32_t first_source = 0;  // in StepTable::sources
  std::uint16_t source_count = 0;  // peers, without kOwn
  std::uint16_t added = 0;         // values to add; 0: a copy
  std::uint16_t buffer = 0;
};

struct StepLocal {
  std::int32_t step = 0;
  Rank rank = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::uint32_t first_source = 0;  // buffers, in StepTable::sources
  std::uint16_t source_count = 0;
  std::uint16_t buffer = 0;
  std::uint16_t passes = 1;  // over its chunks; a copy takes as long as one addition
};

struct StepTable {
  int ranks = 0;
  int steps = 0;
  int buffers = 1;
  bool single_chunks = true;  // every receive has one chunk
  Chunking chunking{1};
  // By step, and by rank within a step, because a run reads them in this order.
  std::vector<StepReceive> receives;
  std::vector<std::size_t> receive_ends;  // of each step
  std::vector<StepLocal> locals;
  std::vector<std::size_t> local_ends;
  std::vector<std::int32_t> sources;
  // Steps in which the same ranks send to the same ranks have the same number, from 0.
  std::vector<int> pattern;
  int patterns = 0;
  // For each source of a receive, the buffer that its message is read from. Empty if all are read
  // from the user's.
  std::vector<std::uint16_t> source_buffers;

  std::span<const StepReceive> receives_of(int step) const {
    return part_of(std::span{receives}, receive_ends, step);
  }
  std::span<const StepLocal> locals_of(int step) const {
    return part_of(std::span{locals}, local_ends, step);
  }

 private:
  template <class Item>
  static std::span<const Item> part_of(std::span<const Item> all,
                                       const std::vector<std::size_t>& ends, int step) {
    const std::size_t begin = step == 0 ? 0 : ends[static_cast<std::size_t>(step - 1)];
    return all.subspan(begin, ends[static_cast<std::size_t>(step)] - begin);
  }
};

// Returns nullopt if the schedule cannot be packed: values change their chunk numbers, or messages
// are received in another step than they are sent.
std::optional<StepTable> pack_steps(const Algorithm& algorithm, const Shape& shape);

// The time at which each rank is done.
std::vector<double> run_steps(const StepTable& table, const FlowNetwork& network,
                              const RunOptions& options);

}  // namespace sluice::simulate
