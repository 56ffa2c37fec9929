#include "schedule/marks.h"

#include <algorithm>
#include <map>
#include <utility>

#include "schedule/dataflow.h"

namespace sluice::schedule {
namespace {

// For each event, whether it writes a whole sum. Counts the contributions in every position of
// every rank, as the schedule runs.
std::vector<bool> find_whole_sums(const Schedule& schedule, const EventGraph& graph,
                                  std::span<const std::uint32_t> order) {
  std::vector<bool> whole_sums(graph.events().size(), false);
  if (!is_reduction(schedule.shape.collective)) return whole_sums;
  const Positions positions{schedule.programs.front()};
  std::vector<std::int32_t> contributions(schedule.programs.size() * positions.count(), 0);
  const auto at = [&](Rank rank, const Range& range, int i) -> std::int32_t& {
    return contributions[static_cast<std::size_t>(rank) * positions.count() +
                         positions.at(range, i)];
  };
  const int chunks = schedule.programs.front().chunking().chunks();
  for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
    for (int chunk = 0; chunk < chunks; ++chunk) at(rank, {kUserBuffer, 0, chunks}, chunk) = 1;
  }
  for (const std::uint32_t number : order) {
    const Event& event = graph.events()[number];
    const Range& range = event.write->range;
    bool whole = event.write->combine == Combine::Reduce;
    for (int i = 0; i < range.count; ++i) {
      std::int32_t sum = 0;
      for (const Operand& operand : graph.operands(event))
        sum += at(operand.rank, {operand.buffer, operand.first, range.count}, i);
      at(event.rank, range, i) = sum;
      whole = whole && sum == schedule.shape.ranks;
    }
    whole_sums[number] = whole;
  }
  return whole_sums;
}

// The operations of a rank: what each waits for, and the numbers of its sends and other operations.
struct NumberedOperations {
  explicit NumberedOperations(const Program& program) : waits{program} {
    std::uint32_t number = 0;
    for_operations(program, [&](const Operation& operation) {
      if (operation.kind == Operation::Kind::Send) {
        sends.push_back({number++, operation.range});
      } else {
        writes[operation.write] = number++;
      }
    });
  }
  struct NumberedSend {
    std::uint32_t number;
    Range range;
  };
  OperationWaits waits;
  std::vector<NumberedSend> sends;
  std::map<const Write*, std::uint32_t> writes;
};

class PushFinder {
 public:
  PushFinder(const Schedule& schedule, const EventGraph& graph)
      : schedule_{schedule}, graph_{graph} {}

  // Most ranks send no sum back to one of its sources. Only where one does, the waits of the two
  // ranks are computed. REQUIRES: `first_event` is the rank's first one.
  void mark(Rank rank, std::uint32_t first_event, std::vector<bool>& pushes) {
    const Program& program = program_of(rank);
    std::map<std::pair<int, int>, std::vector<const Event*>> sums;  // by first and count
    std::uint32_t next_event = first_event;
    for_operations(program, [&](const Operation& operation) {
      if (operation.kind == Operation::Kind::Send) return;
      const Event& event = graph_.events()[next_event++];
      const bool in_place = !event.local && event.write->combine == Combine::Reduce &&
                            operation.range.buffer == kUserBuffer;
      if (in_place) sums[{operation.range.first, operation.range.count}].push_back(&event);
    });
    std::uint32_t number = 0;
    std::size_t send = 0;
    for_operations(program, [&](const Operation& operation) {
      const std::uint32_t own = number++;
      if (operation.kind != Operation::Kind::Send) return;
      const std::size_t own_send = send++;
      const auto found = sums.find({operation.range.first, operation.range.count});
      if (found == sums.end() || operation.range.buffer != kUserBuffer) return;
      for (const Event* const sum : found->second)
        pushes[own] = pushes[own] || is_push(*sum, own, graph_.event_of_send(rank, own_send));
    });
  }

 private:
  const Program& program_of(Rank rank) const {
    return schedule_.programs[static_cast<std::size_t>(rank)];
  }
  const NumberedOperations& operations_of(Rank rank) {
    return operations_.try_emplace(rank, program_of(rank)).first->second;
  }

  // Whether the send with number `own` carries `sum` back to one of its sources, which receives it
  // by `copy`, and all conditions of a push hold.
  bool is_push(const Event& sum, std::uint32_t own, const Event& copy) {
    const Range& range = sum.write->range;
    if (copy.write->combine != Combine::Copy || copy.write->range != range) return false;
    const auto sources = program_of(sum.rank).sources(*sum.write);
    const auto source = std::find(sources.begin(), sources.end(), copy.rank);
    if (source == sources.end()) return false;
    const NumberedOperations& here = operations_of(sum.rank);
    const auto waits = here.waits.of(own);
    if (waits.size() != 1 || waits.front() != here.writes.at(sum.write)) return false;
    const NumberedOperations& there = operations_of(copy.rank);
    const auto part =
        there.sends[graph_.sends_of(sum)[static_cast<std::size_t>(source - sources.begin())]];
    if (part.range != range) return false;
    const auto before_copy = there.waits.of(there.writes.at(copy.write));
    const auto before_part = there.waits.of(part.number);
    return std::all_of(before_copy.begin(), before_copy.end(), [&](std::uint32_t earlier) {
      return earlier == part.number ||
             std::binary_search(before_part.begin(), before_part.end(), earlier);
    });
  }

  const Schedule& schedule_;
  const EventGraph& graph_;
  std::map<Rank, NumberedOperations> operations_;
};

}  // namespace

OperationMarks apply(const Marks& marks, const Program& program) {
  OperationMarks applied;
  for_operations(program, [&](const Operation& operation) {
    const bool is_send = operation.kind == Operation::Kind::Send;
    const bool is_sum = !is_send && operation.write->combine == Combine::Reduce;
    applied.whole_sums.push_back(is_sum && marks.whole_sum &&
                                 marks.whole_sum(operation.step, operation.range));
    applied.pushes.push_back(is_send && marks.push && marks.push(operation.step, operation.range));
  });
  return applied;
}

namespace {

constexpr std::size_t kMarksInByte = 4;  // two bits for each operation

std::size_t count_operations(const Program& program) {
  std::size_t count = 0;
  for_operations(program, [&](const Operation& /*operation*/) { ++count; });
  return count;
}

}  // namespace

std::string pack(const std::vector<OperationMarks>& marks) {
  std::string packed;
  std::size_t number = 0;
  for (const OperationMarks& own : marks) {
    for (std::size_t i = 0; i < own.pushes.size(); ++i, ++number) {
      if (number % kMarksInByte == 0) packed.push_back(0);
      const int bits = (own.whole_sums[i] ? 1 : 0) | (own.pushes[i] ? 2 : 0);
      packed.back() = static_cast<char>(packed.back() | bits << 2 * (number % kMarksInByte));
    }
  }
  return packed;
}

OperationMarks unpack(const std::string& packed, const Schedule& schedule, Rank rank) {
  std::size_t number = 0;
  for (Rank lower = 0; lower < rank; ++lower)
    number += count_operations(schedule.programs[static_cast<std::size_t>(lower)]);
  const std::size_t end =
      number + count_operations(schedule.programs[static_cast<std::size_t>(rank)]);
  OperationMarks marks;
  for (; number < end; ++number) {
    const auto byte = static_cast<unsigned char>(packed[number / kMarksInByte]);
    const unsigned bits = byte >> 2 * (number % kMarksInByte);
    marks.whole_sums.push_back((bits & 1U) != 0);
    marks.pushes.push_back((bits & 2U) != 0);
  }
  return marks;
}

std::size_t packed_bytes(const Schedule& schedule) {
  std::size_t operations = 0;
  for (const Program& program : schedule.programs) operations += count_operations(program);
  return (operations + kMarksInByte - 1) / kMarksInByte;
}

std::vector<OperationMarks> find_marks(const Schedule& schedule, const EventGraph& graph,
                                       std::span<const std::uint32_t> order) {
  const std::vector<bool> whole_events = find_whole_sums(schedule, graph, order);
  PushFinder pushes{schedule, graph};
  std::vector<OperationMarks> marks;
  std::uint32_t event = 0;
  for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
    OperationMarks& own = marks.emplace_back();
    const std::uint32_t first_event = event;
    for_operations(schedule.programs[static_cast<std::size_t>(rank)],
                   [&](const Operation& operation) {
                     const bool is_send = operation.kind == Operation::Kind::Send;
                     own.whole_sums.push_back(!is_send && whole_events[event++]);
                   });
    own.pushes.resize(own.whole_sums.size(), false);
    if (is_reduction(schedule.shape.collective)) pushes.mark(rank, first_event, own.pushes);
  }
  return marks;
}

}  // namespace sluice::schedule
