#include "tests/mutation/events.h"

#include <algorithm>
#include <deque>
#include <map>
#include <stdexcept>
#include <utility>

namespace sluice::mutation {

Events events_of(const Schedule& schedule) {
  Events result;
  std::vector<Event>& events = result.list;
  const auto require = [](bool legal) {
    if (!legal) throw std::invalid_argument{"malformed"};
  };

  const Rank ranks = schedule.shape.ranks;
  require(ranks >= 1 && std::ssize(schedule.programs) == ranks);
  for (const Program& program : schedule.programs)
    require(program.layout() == schedule.programs[0].layout());

  // Messages that receives wait for, by (sender, receiver), in order: event and place in its
  // sources.
  std::map<std::pair<Rank, Rank>, std::deque<std::pair<int, std::size_t>>> messages;
  const auto add = [&](Rank rank, const Write& write, std::span<const int> sources, bool local) {
    const int own = local ? write.range.buffer : kOwn;
    for (auto source = sources.begin(); source != sources.end(); ++source)
      require(std::find(sources.begin(), source, *source) == source);
    require(write.combine == Combine::Copy ? sources.size() == 1 && sources[0] != own
                                           : sources.size() >= 2);
    const int event = static_cast<int>(events.size());
    events.push_back({{rank, write.range.buffer}, write.range});
    for (const int source : sources) {
      const bool message = !local && source != own;
      events.back().sources.push_back({rank, local ? source : write.range.buffer});
      if (!message) continue;
      auto& queue = messages[{source, rank}];
      if (!queue.empty()) events[queue.back().first].then_in_pair.push_back(event);
      queue.push_back({event, events.back().sources.size() - 1});
    }
    return event;
  };

  // What a rank's operations have touched so far; those that conflict keep program order, except
  // two transfers of one step, which have none.
  struct Access {
    int event, step;
    bool local, writes;
  };
  const int chunks = schedule.programs.at(0).layout().chunks();
  int buffers = 1;  // of the rank that has most
  for (const Program& program : schedule.programs) buffers = std::max(buffers, program.buffers());
  std::vector<std::vector<Access>> accesses(ranks * buffers * chunks);
  const auto touch = [&](Rank rank, Range range, Access now) {
    require(range.buffer >= 0 && range.buffer < schedule.programs[rank].buffers());
    require(range.first >= 0 && range.first < chunks && range.count >= 1 && range.count <= chunks);
    for (int i = 0; i < range.count; ++i) {
      const int chunk = (range.first + i) % chunks;
      auto& earlier = accesses[(rank * buffers + range.buffer) * chunks + chunk];
      for (const Access& past : earlier) {
        if (past.event == now.event || !(past.writes || now.writes)) continue;
        const bool ordered = past.step != now.step || past.local || now.local;
        if (ordered) events[past.event].then.push_back(now.event);
        result.race = result.race || !ordered;
      }
      earlier.push_back(now);
    }
  };

  for (Rank rank = 0; rank < ranks; ++rank)
    for (int step = 0; step < schedule.programs[rank].steps(); ++step)
      for (const Write& receive : schedule.programs[rank].receives(step))
        add(rank, receive, schedule.programs[rank].sources(receive), false);

  int next_receive = 0;
  for (Rank rank = 0; rank < ranks; ++rank) {
    const Program& program = schedule.programs[rank];
    for (int step = 0; step < program.steps(); ++step) {
      for (const auto& [peer, range] : program.sends(step)) {
        auto& queue = messages[{rank, peer}];
        require(peer != rank && !queue.empty());
        const auto [event, source] = queue.front();
        queue.pop_front();
        require(range.first == events[event].range.first &&
                range.count == events[event].range.count);
        events[event].sources[source] = {rank, range.buffer};
        touch(rank, range, {event, step, false, false});
      }
      for (const Write& receive : program.receives(step))
        touch(rank, receive.range, {next_receive++, step, false, true});
      for (const Write& local : program.locals(step)) {
        const int event = add(rank, local, program.sources(local), true);
        for (const BufferId buffer : program.sources(local))
          touch(rank, {buffer, local.range.first, local.range.count}, {event, step, true, false});
        touch(rank, local.range, {event, step, true, true});
      }
    }
  }
  for (const auto& [pair, unsent] : messages) require(unsent.empty());
  return result;
}

}  // namespace sluice::mutation
