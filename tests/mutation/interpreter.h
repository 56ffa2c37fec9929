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
  std::vector<int> waits = events.waits;
  std::vector<int> order;
  for (int event = 0; event < std::ssize(waits); ++event) order.push_back(event);
  std::shuffle(order.begin(), order.end(), random);
  for (auto next = order.begin(); next != order.end(); ++next) {
    const auto ready = std::find_if(next, order.end(), [&](int event) { return !waits[event]; });
    if (ready == order.end()) return "stuck";
    std::iter_swap(next, ready);
    for (const int waiting : events.list[*next].then) --waits[waiting];
  }
  const auto& [collective, ranks, grid, root, segments] = schedule.shape;
  std::vector<std::vector<Value>> memory(ranks);         // each rank's buffers
  for (int chunk = 0; chunk < events.chunks; ++chunk) {  // chunks do not mix
    const Rank owner = chunk * ranks / events.chunks;
    Value total;
    for (Rank rank = 0; rank < ranks; ++rank) {
      memory[rank].assign(schedule.programs[rank].buffers(), Value{});
      if (collective == Collective::AllGather && rank != owner) continue;
      if (collective == Collective::Broadcast && rank != root) continue;
      total += memory[rank][kUserBuffer] = Value{rank, chunk};
    }
    for (const int number : order) {
      const OracleEvent& event = events.list[number];
      if (!events.covers(event.target().range, chunk)) continue;
      Value sum;
      for (const Access& source : event.sources()) {
        if (memory[source.rank][source.range.buffer] == Value{}) return "read of nothing";
        sum += memory[source.rank][source.range.buffer];
      }
      memory[event.target().rank][event.target().range.buffer] = sum;
    }
    for (Rank rank = 0; rank < ranks; ++rank) {
      if (collective == Collective::ReduceScatter && rank != owner) continue;
      if (collective == Collective::Reduce && rank != root) continue;
      const Value& output = memory[rank][kUserBuffer];
      if (!output.adds_up_to(total)) return "wrong output";
      if (collective == Collective::AllReduce && output != memory[0][0]) return "ranks disagree";
    }
  }
  return "";
}

}  // namespace sluice::mutation
