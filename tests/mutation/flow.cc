#include "tests/mutation/flow.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace sluice::mutation {

bool every_value_flows(const Promise& promise, std::span<const Event> events,
                       std::span<const int> order) {
  BufferId buffers = 1;
  for (const Event& event : events) {
    buffers = std::max(buffers, event.target.buffer + 1);
    for (const Place source : event.sources) buffers = std::max(buffers, source.buffer + 1);
  }
  const auto cell = [&](Place place, int chunk) {
    return (place.rank * buffers + place.buffer) * promise.chunks + chunk;
  };
  // Backwards: a place is awaited if a later event or the table of collectives reads it.
  std::vector<char> awaited(cell({promise.ranks, 0}, 0));
  for (Rank rank = 0; rank < promise.ranks; ++rank)
    for (int chunk = 0; chunk < promise.chunks; ++chunk)
      awaited[cell({rank, kUserBuffer}, chunk)] = promise.at_end(rank, chunk);
  for (std::size_t at = order.size(); at-- > 0;) {
    const Event& event = events[order[at]];
    for (int i = 0; i < event.range.count; ++i) {
      const int chunk = (event.range.first + i) % promise.chunks;
      if (!std::exchange(awaited[cell(event.target, chunk)], false)) return false;
      for (const Place source : event.sources) awaited[cell(source, chunk)] = true;
    }
  }
  return true;
}

}  // namespace sluice::mutation
