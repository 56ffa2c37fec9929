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

// Numbers the positions of one rank from 0.
class Positions {
 public:
  explicit Positions(const Program& program)
      : chunks_{static_cast<std::size_t>(program.chunking().chunks())},
        count_{static_cast<std::size_t>(program.buffers()) * chunks_} {}

  std::size_t count() const { return count_; }

  // Calls visit(number) for the chunks of the range, in `buffer`.
  template <class Visit>
  void for_each(const Range& range, BufferId buffer, Visit&& visit) const {
    for (int i = 0; i < range.count; ++i) {
      visit(static_cast<std::size_t>(buffer) * chunks_ +
            static_cast<std::size_t>(range.first + i) % chunks_);
    }
  }

 private:
  std::size_t chunks_;
  std::size_t count_;
};

// The last write of each position, and the reads since.
class AccessHistory {
 public:
  explicit AccessHistory(const Program& program)
      : positions_{program}, accesses_(positions_.count()) {}

  // Call these in program order. They call wait_for(other) for each operation that must be done
  // before this one, possibly more than once and possibly with the operation itself.
  template <class WaitFor>
  void read(const Range& range, BufferId buffer, std::uint32_t operation, WaitFor&& wait_for) {
    positions_.for_each(range, buffer, [&](std::size_t number) {
      Accesses& last = accesses_[number];
      if (last.writer != kNone) wait_for(last.writer);
      reads_.push_back({operation, last.read});
      last.read = static_cast<std::uint32_t>(reads_.size() - 1);
    });
  }
  template <class WaitFor>
  void write(const Range& range, std::uint32_t operation, WaitFor&& wait_for) {
    positions_.for_each(range, range.buffer, [&](std::size_t number) {
      Accesses& last = accesses_[number];
      if (last.writer != kNone) wait_for(last.writer);
      for (std::uint32_t read = last.read; read != kNone; read = reads_[read].previous)
        wait_for(reads_[read].operation);
      last = {operation, kNone};
    });
  }

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  struct Accesses {
    std::uint32_t writer = kNone;
    std::uint32_t read = kNone;  // the last one since the write: the head of a list in reads_
  };
  struct Read {
    std::uint32_t operation;
    std::uint32_t previous;
  };

  Positions positions_;
  std::vector<Accesses> accesses_;
  std::vector<Read> reads_;
};

}  // namespace sluice::schedule
