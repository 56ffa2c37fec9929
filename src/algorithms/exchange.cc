// exchange.cc - every rank sends its whole buffer to every other rank, and reduces all buffers.
//   1 step; each rank sends n-1 buffers. The sum is rank 0 + rank 1 + ... from left to right.
//   For the smallest messages: no rank waits for a partial sum.
//
//   n = 3   0 -> 1, 2   1 -> 0, 2   2 -> 0, 1   at each rank: buffer = from 0 + from 1 + from 2
#include <vector>

#include "algorithms/builtin.h"
#include "base/format.h"

namespace sluice::algorithms {

Program exchange(const Shape& shape, Rank rank) {
  const int n = shape.ranks;
  std::vector<std::string> scratch;
  for (Rank peer = 0; peer < n; ++peer) scratch.push_back(base::format("from{}", peer));
  const auto from = [](Rank peer) { return BufferId{1 + peer}; };

  Program program{Chunking{1}, std::move(scratch)};
  if (n == 1) return program;
  program.begin_step();
  std::vector<BufferId> in_rank_order;
  for (Rank peer = 0; peer < n; ++peer) {
    in_rank_order.push_back(peer == rank ? kUserBuffer : from(peer));
    if (peer == rank) continue;
    program.send(peer, {});
    program.receive_copy(peer, {from(peer)});
  }
  program.local_reduce({}, in_rank_order);
  return program;
}

int exchange_steps(const Shape& shape) { return shape.ranks == 1 ? 0 : 1; }

Fraction exchange_sent(const Shape& shape, Rank /*rank*/) { return shape.ranks - 1; }

void exchange_traffic(const Shape& shape, TrafficSink& sink) {
  if (shape.ranks == 1) return;
  for (Rank from = 0; from < shape.ranks; ++from) {
    for (Rank to = 0; to < shape.ranks; ++to) {
      if (from != to) sink.message(from, to, 1);
    }
    sink.reduce(from, shape.ranks - 1);
  }
  sink.end_step(1);
}

Marks exchange_marks(const Shape& /*shape*/, Rank /*rank*/) {
  return {.whole_sum = [](int, const Range&) { return true; }};
}

}  // namespace sluice::algorithms
