// recursive_doubling.cc - the whole vector to a partner at distance 1, 2, 4, ...
//   (Thakur, Rabenseifner and Gropp, 2005.)
//   For powers of two: log2 n steps, and each rank sends log2 n buffers. Otherwise, let p be the
//   largest power of two below n. Ranks p, p+1, ... first send their buffer to ranks 0, 1, ..., and
//   receive the result in the end: floor(log2 n) + 2 steps, and at most floor(log2 n) + 1 buffers.
//
//   n = 5:   4 -> 0   |   0 <-> 1, 2 <-> 3   |   0 <-> 2, 1 <-> 3   |   0 -> 4
#include "algorithms/builtin.h"

namespace sluice::algorithms {
namespace {

int largest_power_of_two(int n) { return 1 << floor_log2(n); }

}  // namespace

Program recursive_doubling(const Shape& shape, Rank rank) {
  const int p = largest_power_of_two(shape.ranks);
  const int extra = shape.ranks - p;
  const Range buffer{kUserBuffer};
  constexpr BufferId kArrived = 1;

  Program program{Chunking{1}, {"arrived"}};
  if (extra > 0) {
    program.begin_step();
    if (rank >= p) program.send(rank - p, buffer);
    const Rank sum[] = {kOwn, rank + p};
    if (rank < extra) program.receive_reduce(buffer, sum);
  }
  for (int distance = 1; distance < p; distance *= 2) {
    program.begin_step();
    if (rank >= p) continue;
    const Rank partner = rank ^ distance;
    program.send(partner, buffer);
    program.receive_copy(partner, {kArrived});
    const BufferId sum[] = {kUserBuffer, kArrived};
    program.local_reduce(buffer, sum);
  }
  if (extra > 0) {
    program.begin_step();
    if (rank < extra) program.send(rank + p, buffer);
    if (rank >= p) program.receive_copy(rank - p, buffer);
  }
  return program;
}

int recursive_doubling_steps(const Shape& shape) {
  return floor_log2(shape.ranks) + (is_power_of_two(shape.ranks) ? 0 : 2);
}

Fraction recursive_doubling_sent(const Shape& shape, Rank rank) {
  const int p = largest_power_of_two(shape.ranks);
  if (rank >= p) return 1;
  return floor_log2(p) + (rank < shape.ranks - p ? 1 : 0);
}

void recursive_doubling_traffic(const Shape& shape, TrafficSink& sink) {
  const int p = largest_power_of_two(shape.ranks);
  const int extra = shape.ranks - p;
  for (Rank rank = 0; rank < extra; ++rank) {
    sink.message(rank + p, rank, 1);
    sink.reduce(rank, 1);
  }
  if (extra > 0) sink.end_step(1);
  for (int distance = 1; distance < p; distance *= 2) {
    for (Rank rank = 0; rank < p; ++rank) {
      sink.message(rank, rank ^ distance, 1);
      sink.reduce(rank, 1);
    }
    sink.end_step(1);
  }
  for (Rank rank = 0; rank < extra; ++rank) sink.message(rank, rank + p, 1);
  if (extra > 0) sink.end_step(1);
}

Marks recursive_doubling_marks(const Shape& shape, Rank /*rank*/) {
  // Before the last exchange, a rank has the contributions of half of the ranks.
  const int first_exchange = is_power_of_two(shape.ranks) ? 0 : 1;
  const int last_exchange = first_exchange + floor_log2(shape.ranks) - 1;
  return {.whole_sum = [=](int step, const Range&) { return step == last_exchange; }};
}

}  // namespace sluice::algorithms
