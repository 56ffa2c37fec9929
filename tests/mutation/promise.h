// promise.h - the table of collectives in docs/execution-model.md: who holds what, before and
// after.
#pragma once

#include <optional>
#include <string>

#include "sluice/schedule.h"

namespace sluice::mutation {

// REQUIRES: legal().
struct Promise {
  Collective collective;
  int ranks;
  Rank root;
  int chunks;

  bool legal() const {
    const bool owned =
        collective == Collective::ReduceScatter || collective == Collective::AllGather;
    return ranks >= 1 && chunks >= 1 && root >= 0 && root < ranks &&
           !(owned && chunks % ranks != 0);
  }
  // Does this chunk of the rank's user buffer hold the rank's contribution at the start?
  bool at_start(Rank rank, int chunk) const {
    if (collective == Collective::AllGather) return rank == chunk / (chunks / ranks);
    return collective != Collective::Broadcast || rank == root;
  }
  // Must it hold, at the end, the sum of what all ranks held of this chunk at the start?
  bool at_end(Rank rank, int chunk) const {
    if (collective == Collective::ReduceScatter) return rank == chunk / (chunks / ranks);
    return collective != Collective::Reduce || rank == root;
  }

  // What is wrong with the outputs, or "". held(rank, chunk) is the std::optional<Value> in the
  // user's buffer at the end.
  template <class Value, class Held>
  std::string broken(const Held& held) const {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      std::optional<Value> total, first;
      for (Rank rank = 0; rank < ranks; ++rank) {
        if (!at_start(rank, chunk)) continue;
        const Value mine = Value::contribution(rank, chunk);
        total = total ? *total + mine : mine;
      }
      for (Rank rank = 0; rank < ranks; ++rank) {
        if (!at_end(rank, chunk)) continue;
        const std::optional<Value>& output = held(rank, chunk);
        if (!output || !output->equals(*total)) return "wrong output";
        if (first && *first != *output) return "outputs with different bits";
        first = output;
      }
    }
    return "";
  }
};

}  // namespace sluice::mutation
