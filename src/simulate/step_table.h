// step_table.h - the Programs of thousands of ranks, packed: two dozen bytes a message.
//
// Only schedules whose messages are sent and received in the same step can be packed; those of all
// built-in algorithms are. Then every message of a step depends on earlier steps alone, and steps
// can be gone through one after the other without a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "sluice/algorithms.h"

namespace sluice::simulate {

struct StepReceive {
  std::int32_t step = 0;
  Rank rank = 0;
  std::int32_t first = 0;  // chunks
  std::int32_t count = 0;
  std::uint32_t first_source = 0;  // in StepTable::sources
  std::uint16_t source_count = 0;  // peers, without its own value
  std::uint16_t added = 0;         // values to be added up; 0: a copy
  std::uint8_t buffer = 0;
};

struct StepLocal {
  std::int32_t step = 0;
  Rank rank = 0;
  std::int32_t first = 0;
  std::int32_t count = 0;
  std::uint32_t first_source = 0;  // buffers
  std::uint16_t source_count = 0;
  std::uint8_t buffer = 0;
  std::uint8_t passes = 1;
};

struct StepTable {
  int ranks = 0;
  int steps = 0;
  int buffers = 1;
  bool single_chunks = true;  // every receive is of one chunk
  Chunking chunking{1};
  // Step by step, and rank by rank within one: runs read them from front to back.
  std::vector<StepReceive> receives;
  std::vector<std::size_t> receive_ends;  // of each step
  std::vector<StepLocal> locals;
  std::vector<std::size_t> local_ends;
  std::vector<std::int32_t> sources;
  // Steps in which the same ranks send to the same ranks have one number; numbers count from 0.
  std::vector<int> pattern;
  int patterns = 0;
  // Which buffer a message is read from, where it is not the user's: by source_key.
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

// Nothing where it cannot be packed.
std::optional<StepTable> pack_steps(const Algorithm& algorithm, const Shape& shape);

}  // namespace sluice::simulate
