// step_table.h - the Programs of thousands of ranks, packed: two dozen bytes a message.
//
// Only schedules whose messages are sent and received in the same step can be packed; those of all
// built-in algorithms are. Then every message of a step depends on earlier steps alone, and steps
// can be gone through one after the other without a graph.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sluice/algorithms.h"

namespace sluice {

struct StepReceive {
  std::int32_t step = 0;
  std::int32_t first = 0;  // chunks
  std::int32_t count = 0;
  std::uint32_t first_source = 0;  // in StepTable::sources
  std::uint16_t source_count = 0;  // peers, without its own value
  std::uint16_t added = 0;         // values to be added up; 0: a copy
  std::uint8_t buffer = 0;
};

struct StepLocal {
  std::int32_t step = 0;
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
  Layout layout{1};
  std::vector<StepReceive> receives;  // rank by rank, steps rising
  std::vector<std::size_t> receive_ends;
  std::vector<StepLocal> locals;
  std::vector<std::size_t> local_ends;
  std::vector<std::int32_t> sources;
  // Which buffer a message is read from, where it is not the user's: by source_key.
  std::unordered_map<std::uint64_t, std::uint8_t> from_scratch;

  static std::uint64_t source_key(Rank from, Rank to, int step) {
    return (static_cast<std::uint64_t>(step) << 34U) | (static_cast<std::uint64_t>(from) << 17U) |
           static_cast<std::uint64_t>(to);
  }
};

// Nothing where it cannot be packed.
std::optional<StepTable> pack_steps(const Algorithm& algorithm, const Shape& shape);

}  // namespace sluice
