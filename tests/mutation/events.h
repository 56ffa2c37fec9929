// events.h - what takes place in a schedule, and what waits for what: Operations, Matching, Order
// and windows of docs/execution-model.md, from which alone it was written.
#pragma once

#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::mutation {

// A range that an operation reads or writes.
struct Access {
  Rank rank;
  Range range;
  std::pair<int, int> when;  // step; then 0 for its transfers, 1, 2, ... for its local operations
};

// A receive with its sends, or a local operation: the target becomes the sum of the sources.
struct Event {
  Access target;
  std::vector<Access> sources = {};
  std::vector<int> then = {};  // the events that wait for it
};

struct Events {
  int chunks = 0;
  std::vector<Event> list = {};
  std::vector<int> waits = {};  // for how many others each waits
  bool malformed = false;       // a message has no other side, or one with other chunks
  bool race = false;            // transfers of one step conflict: they have no order

  void order(int first, int second) {
    list[first].then.push_back(second);
    ++waits[second];
  }
  bool covers(const Range& range, int chunk) const {
    const int offset = chunk - range.first;
    return (offset < 0 ? offset + chunks : offset) < range.count;
  }
};

// Operations that conflict take place in program order.
inline void order_conflicts(Events& events) {
  for (int first = 0; first < std::ssize(events.list); ++first)
    for (int second = 0; second < std::ssize(events.list); ++second) {
      bool ordered = false;
      const auto compare = [&](const Access& a, const Access& b) {
        if (a.rank != b.rank || a.range.buffer != b.range.buffer || first == second) return;
        if (!events.covers(a.range, b.range.first) && !events.covers(b.range, a.range.first))
          return;
        ordered |= a.when < b.when;
        events.race |= a.when == b.when;
      };
      const auto& [write, reads, then] = events.list[first];
      compare(write, events.list[second].target);
      for (const Access& read : reads) compare(read, events.list[second].target);
      for (const Access& read : events.list[second].sources) compare(write, read);
      if (ordered) events.order(first, second);
    }
}

// The events under a window of one, or without bound. REQUIRES: ranks, buffers, chunks that exist.
inline Events events_of(const Schedule& schedule, bool window_of_one) {
  std::map<std::pair<Rank, Rank>, std::deque<Access>> sent;
  for (Rank rank = 0; rank < schedule.shape.ranks; ++rank)
    for (int step = 0; step < schedule.programs[rank].steps(); ++step)
      for (const Send& send : schedule.programs[rank].sends(step))
        sent[{rank, send.peer}].push_back({rank, send.range, {step, 0}});

  Events events{schedule.programs[0].layout().chunks()};
  std::map<std::pair<Rank, Rank>, int> last;  // event of a pair
  for (Rank rank = 0; rank < schedule.shape.ranks; ++rank) {
    const Program& program = schedule.programs[rank];
    for (int step = 0; step < program.steps(); ++step)
      for (const bool local : {false, true})
        for (const Write& write : local ? program.locals(step) : program.receives(step)) {
          const int number = static_cast<int>(events.list.size());
          const Access target{rank, write.range, {step, local ? 1 + number : 0}};
          events.list.push_back({target});
          events.waits.push_back(0);
          for (const int source : program.sources(write)) {
            Access& read = events.list.back().sources.emplace_back(target);
            if (local) read.range.buffer = source;
            if (local || source == kOwn) continue;
            auto& messages = sent[{source, rank}];
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
