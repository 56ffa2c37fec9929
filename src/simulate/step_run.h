// step_run.h - a schedule of thousands of ranks on a network, step by step.
//
// pack_steps() packs the Programs of all ranks into about two dozen bytes a message. It needs a
// schedule that sends and receives each message in the same step; all built-in algorithms do. Every
// message then depends on earlier steps alone, so a run needs no graph.
//
// run_steps() gives a step's messages the max-min fair rates that they would have if all of them
// started together; a set of senders and receivers that comes back is solved once. With these rates
// the times follow the data as in event_run.h: a message starts once its chunks are ready on both
// sides and the previous message between the same two ranks has left. If these ranks had none in
// the step before, it starts once their ports are done with that step. So ranks run ahead of each
// other, trees are pipelined, and each chunk pays the latency of its own route.
//
// If messages do not share links, or all messages of a step start together, the result equals that
// of event_run.h. On all cluster files tests hold it to 3%, except for short ring messages that
// share host memory: there it is up to a third too slow.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
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
  std::uint16_t source_count = 0;  // peers; the own value is not counted
  std::uint16_t added = 0;         // values to add; 0: a copy
  std::uint8_t buffer = 0;
};

struct StepLocal {
  std::int32_t step = 0;
  Rank rank = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::uint32_t first_source = 0;  // buffers, in StepTable::sources
  std::uint16_t source_count = 0;
  std::uint8_t buffer = 0;
  std::uint8_t passes = 1;
};

struct StepTable {
  int ranks = 0;
  int steps = 0;
  int buffers = 1;
  bool single_chunks = true;  // every receive has one chunk
  Chunking chunking{1};
  // By step, and by rank within a step: a run reads them from front to back.
  std::vector<StepReceive> receives;
  std::vector<std::size_t> receive_ends;  // of each step
  std::vector<StepLocal> locals;
  std::vector<std::size_t> local_ends;
  std::vector<std::int32_t> sources;
  // Steps in which the same ranks send to the same ranks have the same number, from 0.
  std::vector<int> pattern;
  int patterns = 0;
  // The buffer that a message is read from, if it is not the user's, by source_key().
  std::unordered_map<std::uint64_t, std::uint8_t> from_scratch;

  std::span<const StepReceive> receives_of(int step) const {
    return part_of(std::span{receives}, receive_ends, step);
  }
  std::span<const StepLocal> locals_of(int step) const {
    return part_of(std::span{locals}, local_ends, step);
  }

  static std::uint64_t source_key(Rank from, Rank to, int step) {
    return (static_cast<std::uint64_t>(step) << 34U) | (static_cast<std::uint64_t>(from) << 17U) |
           static_cast<std::uint64_t>(to);
  }

 private:
  template <class Item>
  static std::span<const Item> part_of(std::span<const Item> all,
                                       const std::vector<std::size_t>& ends, int step) {
    const std::size_t begin = step == 0 ? 0 : ends[static_cast<std::size_t>(step - 1)];
    return all.subspan(begin, ends[static_cast<std::size_t>(step)] - begin);
  }
};

// Nothing if the schedule cannot be packed.
std::optional<StepTable> pack_steps(const Algorithm& algorithm, const Shape& shape);

// When each rank is done.
std::vector<double> run_steps(const StepTable& table, const FlowNetwork& network,
                              const RunOptions& options);

}  // namespace sluice::simulate
