// interpreter.h - runs a schedule once, in a random order that docs/execution-model.md allows.
#pragma once

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "tests/mutation/events.h"

namespace sluice::mutation {

// Says what went wrong, or "". Value{} is nothing, Value{rank, chunk} a contribution.
template <class Value>
std::string run(const Schedule& schedule, const Events& events, std::mt19937_64& random) {
  if (events.malformed) return "malformed";
  std::vector<const Event*> order;
  for (const Event& event : events.list) order.push_back(&event);
  std::shuffle(order.begin(), order.end(), random);
  std::vector<char> done(events.list.size());
  for (auto next = order.begin(); next != order.end(); ++next) {
    const auto ready = std::find_if(next, order.end(), [&](const Event* event) {
      return std::ranges::all_of(event->before, [&](int other) { return done[other]; });
    });
    if (ready == order.end()) return "stuck";
    std::iter_swap(next, ready);
    done[*next - events.list.data()] = true;
  }
  const auto& [collective, ranks, grid, root, segments] = schedule.shape;
  std::vector<std::vector<Value>> memory(ranks);  // by rank and buffer: chunks do not mix
  for (int chunk = 0; chunk < events.chunks; ++chunk) {
    const Rank owner = chunk * ranks / events.chunks;
    Value total;
    for (Rank rank = 0; rank < ranks; ++rank) {
      memory[rank].assign(schedule.programs[rank].buffers(), Value{});
      if (collective == Collective::AllGather && rank != owner) continue;
      if (collective == Collective::Broadcast && rank != root) continue;
      total += memory[rank][kUserBuffer] = Value{rank, chunk};
    }
    for (const Event* event : order) {
      if (!events.covers(event->target.range, chunk)) continue;
      Value sum;
      for (const Access& source : event->sources) {
        const Value& value = memory[source.rank][source.range.buffer];
        if (value == Value{}) return "read of nothing";
        sum += value;
      }
      memory[event->target.rank][event->target.range.buffer] = sum;
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (collective == Collective::ReduceScatter && rank != owner) continue;
      if (collective == Collective::Reduce && rank != root) continue;
      if (!memory[rank][kUserBuffer].adds_up_to(total)) return "wrong output";
      if (collective == Collective::AllReduce && memory[rank][0] != memory[0][0])
        return "ranks disagree";
    }
  }
  return "";
}

}  // namespace sluice::mutation
