// ring.cc - bandwidth-optimal ring (Patarasuk and Yuan, 2009).
//   2(n-1) steps; each rank sends 2(n-1)/n of the buffer.
//   After n-1 reduce steps rank r owns chunk r; n-1 copy steps pass it on around the ring.
//
//   n = 4, reduce phase     rank 0: c3 -> 1   rank 1: c0 -> 2   rank 2: c1 -> 3   rank 3: c2 -> 0
//                           rank 0: c2 -> 1   rank 1: c3 -> 2   rank 2: c0 -> 3   rank 3: c1 -> 0
//                           rank 0: c1 -> 1   rank 1: c2 -> 2   rank 2: c3 -> 3   rank 3: c0 -> 0
//          copy phase       rank 0: c0 -> 1   rank 1: c1 -> 2   rank 2: c2 -> 3   rank 3: c3 -> 0
//          ...
#include "algorithms/builtin.h"

namespace sluice::algorithms {

Program ring(const Shape& shape, Rank rank) {
  const int n = shape.ranks;
  const Rank next = (rank + 1) % n;
  const Rank previous = (rank + n - 1) % n;
  const auto chunk = [n](int c) { return Range{.first = (c + 2 * n) % n}; };
  const Rank sum[] = {previous, kOwn};

  Program program{Chunking{n}};
  if (has_reduce_phase(shape.collective)) {
    for (int step = 0; step < n - 1; ++step) {
      program.begin_step();
      program.send(next, chunk(rank - 1 - step));
      program.receive_reduce(chunk(rank - 2 - step), sum);
    }
  }
  if (has_gather_phase(shape.collective)) {
    for (int step = 0; step < n - 1; ++step) {
      program.begin_step();
      program.send(next, chunk(rank - step));
      program.receive_copy(previous, chunk(rank - 1 - step));
    }
  }
  return program;
}

int ring_steps(const Shape& shape) { return phases(shape.collective) * (shape.ranks - 1); }

Fraction ring_sent(const Shape& shape, Rank /*rank*/) {
  return {phases(shape.collective) * (shape.ranks - 1), shape.ranks};
}

void ring_traffic(const Shape& shape, TrafficSink& sink) {
  const int n = shape.ranks;
  const auto phase = [&](bool reduces) {
    for (Rank rank = 0; rank < n; ++rank) {
      sink.message(rank, (rank + 1) % n, 1.0 / n);
      if (reduces) sink.reduce(rank, 1.0 / n);
    }
    sink.end_step(n - 1);
  };
  if (n == 1) return;
  if (has_reduce_phase(shape.collective)) phase(true);
  if (has_gather_phase(shape.collective)) phase(false);
}

Marks ring_marks(const Shape& shape, Rank /*rank*/) {
  // The last reduce step adds the last contribution. The copy phase sends the sum on around the
  // ring; only between two ranks is that back to a source.
  const int last_reduce = shape.ranks - 2;
  Marks marks{.whole_sum = [=](int step, const Range&) { return step == last_reduce; }};
  if (shape.ranks == 2) marks.push = [=](int step, const Range&) { return step > last_reduce; };
  return marks;
}

}  // namespace sluice::algorithms
