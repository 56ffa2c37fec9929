// events.h - the events of a schedule, and which of them wait for each other.
//
// Together with interpreter.h this is the oracle for verify(). It was written only from the page
// docs/execution-model.md: the sections Operations, Matching, and Order and windows.
#pragma once

#include <deque>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::mutation {

// A range that an operation reads or writes.
struct Access {
  Rank rank;
  Range range;
  std::pair<int, int> when;  // step; then 0 for its transfers, 1, 2, ... for its local operations
  bool writes = false;
};

// A receive with its sends, or a local operation. The target becomes the sum of the sources.
struct OracleEvent {
  std::vector<Access> accesses;     // the target, then the sources
  std::vector<int> followers = {};  // the events that wait for it

  const Access& target() const { return accesses.front(); }
  std::span<const Access> sources() const { return std::span{accesses}.subspan(1); }
};

struct Events {
  int chunks = 0;
  std::vector<OracleEvent> list = {};
  std::vector<int> waits = {};  // by event: the number of events that it waits for
  bool malformed = false;       // a message has only one side, or its sides differ in their chunks
  bool race = false;            // transfers of one step conflict

  bool covers(const Range& range, int chunk) const {
    const int offset = chunk - range.first;
    return (offset < 0 ? offset + chunks : offset) < range.count;
  }
  bool overlap(const OracleEvent& a,
               const OracleEvent& b) const {  // an event has one range of chunks
    return covers(a.target().range, b.target().range.first) ||
           covers(b.target().range, a.target().range.first);
  }
  void order(int first, int second) {
    list[first].followers.push_back(second);
    ++waits[second];
  }
};

// Operations that conflict take place in program order.
inline void order_conflicts(Events& events) {
  for (int first = 0; first < std::ssize(events.list); ++first)
    for (int second = 0; second < std::ssize(events.list); ++second) {
      if (first == second || !events.overlap(events.list[first], events.list[second])) continue;
      for (const Access& a : events.list[first].accesses)
        for (const Access& b : events.list[second].accesses) {
          const bool same_buffer = a.rank == b.rank && a.range.buffer == b.range.buffer;
          const bool conflict = same_buffer && (a.writes || b.writes);
          if (conflict && a.when < b.when) events.order(first, second);
          if (conflict && a.when == b.when) events.race = true;
        }
    }
}

// The events for a window of one or for an unbounded window. REQUIRES: all ranks, buffers and
// chunks exist.
inline Events events_of(const Schedule& schedule, bool window_of_one) {
  std::map<std::pair<Rank, Rank>, std::deque<Access>> sent;
  for (Rank rank = 0; rank < schedule.shape.ranks; ++rank)
    for (int step = 0; step < schedule.programs[rank].steps(); ++step)
      for (const Send& send : schedule.programs[rank].sends(step))
        sent[{rank, send.peer}].push_back({rank, send.range, {step, 0}});

  Events events{schedule.programs[0].chunking().chunks()};
  std::map<std::pair<Rank, Rank>, int> last;  // event of each pair
  for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
    const Program& program = schedule.programs[rank];
    for (int step = 0; step < program.steps(); ++step)
      for (const bool local : {false, true})
        for (const Write& write : local ? program.locals(step) : program.receives(step)) {
          const int number = static_cast<int>(events.list.size());
          const std::pair<int, int> when{step, local ? 1 + number : 0};
          std::vector<Access>& accesses = events.list.emplace_back().accesses;
          accesses.push_back({rank, write.range, when, true});
          events.waits.push_back(0);
          for (const int source : program.sources(write)) {
            Access& read = accesses.emplace_back(Access{rank, write.range, when});
            if (local) read.range.buffer = source;
            if (local || source == kOwn) continue;
            std::deque<Access>& messages = sent[{source, rank}];
            if (messages.empty()) return Events{.malformed = true};
            read = messages.front();
            messages.pop_front();
            if (read.range.first != write.range.first || read.range.count != write.range.count)
              return Events{.malformed = true};
            const auto [previous, none] = last.insert({{source, rank}, number});
            if (window_of_one && !none) events.order(previous->second, number);
            previous->second = number;
          }
        }
  }
  for (const auto& [pair, messages] : sent) events.malformed |= !messages.empty();
  if (!events.malformed) order_conflicts(events);
  return events;
}

}  // namespace sluice::mutation
