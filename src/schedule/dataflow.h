// dataflow.h - the rule of dataflow: which operations of one rank must wait for each other.
//
// A position is a chunk of a buffer. A read waits for the last write of its position. A write waits
// for the last write and for every read since. for_accesses() says what an operation reads and
// writes, and AccessHistory is the rule.
//
// A history remembers either the operations themselves (OperationNumbers) or only the times at
// which they are done (Times, 16 bytes for each position). OperationWaits is the rule applied to a
// whole Program: verify() orders events by it, the engine orders the instructions of a plan, and
// the simulator runs small schedules by it. The simulator streams schedules of tens of millions of
// operations through a history of times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::schedule {

// One operation of a Program.
struct Operation {
  enum class Kind : std::uint8_t { Send, Receive, Local };

  Kind kind = Kind::Send;
  std::int32_t step = 0;
  Range range;
  Rank peer = 0;                               // of a send
  const Write* write = nullptr;                // of the others
  std::span<const std::int32_t> sources = {};  // likewise: ranks, kOwn or buffers
};

// Calls visit(operation) for the operations of a Program, in order: step by step the sends, the
// receives and the local operations. This order numbers them, from 0.
template <class Visit>
void for_operations(const Program& program, Visit&& visit) {
  for (int step = 0; step < program.steps(); ++step) {
    for (const Send& send : program.sends(step))
      visit(Operation{.step = step, .range = send.range, .peer = send.peer});
    for (const auto kind : {Operation::Kind::Receive, Operation::Kind::Local}) {
      const bool local = kind == Operation::Kind::Local;
      for (const Write& write : local ? program.locals(step) : program.receives(step))
        visit(Operation{kind, step, write.range, 0, &write, program.sources(write)});
    }
  }
}

enum class AccessKind : std::uint8_t { Read, Write };

// Calls visit(range, access) for every range that an operation touches. The old value of a target
// is not listed as a read, because the write waits for the same operations and more.
template <class Visit>
void for_accesses(const Operation& operation, Visit&& visit) {
  if (operation.kind == Operation::Kind::Send) return visit(operation.range, AccessKind::Read);
  if (operation.kind == Operation::Kind::Local) {
    for (const BufferId source : operation.sources) {
      const Range read = Program::source_range(*operation.write, source);
      if (read != operation.range) visit(read, AccessKind::Read);
    }
  }
  visit(operation.range, AccessKind::Write);
}

// Numbers the positions of one rank from 0.
class Positions {
 public:
  explicit Positions(const Program& program) {
    for (BufferId buffer = 0; buffer < program.buffers(); ++buffer)
      ends_.push_back(count() + static_cast<std::size_t>(program.chunks(buffer)));
  }

  std::size_t count() const { return ends_.empty() ? 0 : ends_.back(); }

  // The number of the i-th chunk of a range.
  std::size_t at(const Range& range, int i) const {
    const auto buffer = static_cast<std::size_t>(range.buffer);
    const std::size_t begin = buffer == 0 ? 0 : ends_[buffer - 1];
    return begin + static_cast<std::size_t>(range.first + i) % (ends_[buffer] - begin);
  }
  // Calls visit(number) for the chunks of a range.
  template <class Visit>
  void for_each(const Range& range, Visit&& visit) const {
    for (int i = 0; i < range.count; ++i) visit(at(range, i));
  }

 private:
  std::vector<std::size_t> ends_;  // of each buffer's positions
};

// Remembers operations by their numbers. The reads of a position are a list.
class OperationNumbers {
 public:
  using Done = std::uint32_t;
  static constexpr Done kNone = ~Done{0};
  struct Reads {
    std::uint32_t last = kNone;  // in reads_
  };

  void add(Reads& reads, Done operation) {
    reads_.push_back({operation, reads.last});
    reads.last = static_cast<std::uint32_t>(reads_.size() - 1);
  }
  template <class Wait>
  void visit(const Reads& reads, Wait&& wait_for) const {
    for (std::uint32_t read = reads.last; read != kNone; read = reads_[read].previous)
      wait_for(reads_[read].operation);
  }

 private:
  struct Read {
    Done operation;
    std::uint32_t previous;
  };
  std::vector<Read> reads_;
};

// Remembers when operations are done. Of the reads of a position only the latest counts.
class Times {
 public:
  using Done = double;
  static constexpr Done kNone = 0;
  struct Reads {
    double latest = kNone;
  };

  void add(Reads& reads, Done time) const { reads.latest = std::max(reads.latest, time); }
  template <class Wait>
  void visit(const Reads& reads, Wait&& wait_for) const {
    wait_for(reads.latest);
  }
};

// The rule. `Memory` is OperationNumbers or Times.
template <class Memory>
class AccessHistory {
 public:
  using Done = typename Memory::Done;

  explicit AccessHistory(std::size_t positions) : positions_(positions) {}

  // Calls wait_for(done) for what an access of the position must wait for.
  template <class Wait>
  void before(std::size_t position, AccessKind access, Wait&& wait_for) const {
    const Position& at = positions_[position];
    if (at.write != Memory::kNone) wait_for(at.write);
    if (access == AccessKind::Write) memory_.visit(at.reads, wait_for);
  }
  // Records an access. REQUIRES: calls for one position come in program order.
  void after(std::size_t position, AccessKind access, Done done) {
    Position& at = positions_[position];
    if (access == AccessKind::Write) {
      at = {done, {}};
    } else {
      memory_.add(at.reads, done);
    }
  }

 private:
  struct Position {
    Done write = Memory::kNone;         // the last one
    typename Memory::Reads reads = {};  // those since
  };
  Memory memory_;
  std::vector<Position> positions_;
};

// For every operation of a Program, the earlier operations that it waits for.
class OperationWaits {
 public:
  explicit OperationWaits(const Program& program) {
    const Positions positions{program};
    AccessHistory<OperationNumbers> history{positions.count()};
    for_operations(program, [&](const Operation& operation) {
      const auto number = static_cast<std::uint32_t>(ends_.size());
      const auto begin = static_cast<std::ptrdiff_t>(earlier_.size());
      for_accesses(operation, [&](const Range& range, AccessKind access) {
        positions.for_each(range, [&](std::size_t position) {
          history.before(position, access, [&](std::uint32_t each) { earlier_.push_back(each); });
          history.after(position, access, number);
        });
      });
      std::sort(earlier_.begin() + begin, earlier_.end());
      earlier_.erase(std::unique(earlier_.begin() + begin, earlier_.end()), earlier_.end());
      ends_.push_back(earlier_.size());
    });
  }

  std::uint32_t operations() const { return static_cast<std::uint32_t>(ends_.size()); }
  // By rising number, each once.
  std::span<const std::uint32_t> of(std::uint32_t operation) const {
    const std::size_t begin = operation == 0 ? 0 : ends_[operation - 1];
    return std::span{earlier_}.subspan(begin, ends_[operation] - begin);
  }

 private:
  std::vector<std::uint32_t> earlier_;
  std::vector<std::size_t> ends_;  // where each operation's part of earlier_ ends
};

}  // namespace sluice::schedule
