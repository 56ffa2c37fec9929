// dataflow.h - which operations of one rank must wait for each other.
//
// A position is a chunk of a buffer. A read waits for the last write of its position. A write waits
// for the last write and for every read since. The verifier orders events by this rule, and the
// engine orders the instructions of a plan.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::schedule {

class AccessHistory {
 public:
  explicit AccessHistory(const Program& program)
      : chunks_{static_cast<std::size_t>(program.chunking().chunks())},
        positions_(static_cast<std::size_t>(program.buffers()) * chunks_) {}

  // Call these in program order. They call wait_for(other) for each operation that must be done
  // before this one, possibly more than once and possibly with the operation itself.
  template <class WaitFor>
  void read(const Range& range, BufferId buffer, std::uint32_t operation, WaitFor&& wait_for) {
    for_positions(range, buffer, [&](Position& position) {
      if (position.writer != kNone) wait_for(position.writer);
      reads_.push_back({operation, position.last_read});
      position.last_read = static_cast<std::uint32_t>(reads_.size() - 1);
    });
  }
  template <class WaitFor>
  void write(const Range& range, std::uint32_t operation, WaitFor&& wait_for) {
    for_positions(range, range.buffer, [&](Position& position) {
      if (position.writer != kNone) wait_for(position.writer);
      for (std::uint32_t read = position.last_read; read != kNone; read = reads_[read].previous)
        wait_for(reads_[read].operation);
      position = {operation, kNone};
    });
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Position {
    std::uint32_t writer = kNone;
    std::uint32_t last_read = kNone;  // since the write: the head of a list in reads_
  };
  struct Read {
    std::uint32_t operation;
    std::uint32_t previous;
  };

  template <class Visit>
  void for_positions(const Range& range, BufferId buffer, Visit&& visit) {
    for (int i = 0; i < range.count; ++i) {
      visit(positions_[static_cast<std::size_t>(buffer) * chunks_ +
                       static_cast<std::size_t>(range.first + i) % chunks_]);
    }
  }

  std::size_t chunks_;
  std::vector<Position> positions_;
  std::vector<Read> reads_;
};

}  // namespace sluice::schedule
