// direct.cc - every rank reduces its own slice from all ranks, in rank order, and sends the result
// to all others.
//   2 steps; each rank sends 2(n-1)/n of the buffer.
//   On every rank, the sum of an element is rank 0 + rank 1 + ... + rank n-1, from left to right.
//   So the bits do not depend on how gradients are grouped into buffers.
//
//   n = 3   0: c1 -> 1, c2 -> 2   1: c0 -> 0, c2 -> 2   2: c0 -> 0, c1 -> 1   (c_r is reduced at r)
//           0: c0 -> 1, 2         1: c1 -> 0, 2         2: c2 -> 0, 1
#include <numeric>
#include <vector>

#include "algorithms/builtin.h"

namespace sluice::algorithms {
namespace {

// A collective has the first step, the second or both; these functions say which messages each step
// has. In the first step, a message from a to b has b's chunk: the slice goes to the rank that
// reduces it or sends it on. In the second step, it has a's chunk.
bool has_first_step(Collective collective) { return collective != Collective::AllGather; }
bool has_second_step(Collective collective) { return collective != Collective::ReduceScatter; }

bool in_first_step(const Shape& shape, Rank from, Rank /*to*/) {
  return shape.collective != Collective::Broadcast || from == shape.root;
}

bool in_second_step(const Shape& shape, Rank /*from*/, Rank to) {
  if (shape.collective == Collective::Reduce) return to == shape.root;
  if (shape.collective == Collective::Broadcast)
    return to != shape.root;  // the root has all chunks
  return true;
}

template <class Visit>
void for_peers(const Shape& shape, Rank rank, Visit&& visit) {
  for (Rank peer = 0; peer < shape.ranks; ++peer) {
    if (peer != rank) visit(peer);
  }
}

}  // namespace

Program direct(const Shape& shape, Rank rank) {
  Program program{Chunking{shape.ranks}};
  if (shape.ranks == 1) return program;
  const auto slice = [](Rank owner) { return Range{.first = owner}; };

  if (has_first_step(shape.collective)) {
    program.begin_step();
    for_peers(shape, rank, [&](Rank peer) {
      if (in_first_step(shape, rank, peer)) program.send(peer, slice(peer));
    });
    if (is_reduction(shape.collective)) {
      std::vector<Rank> in_rank_order(static_cast<std::size_t>(shape.ranks));
      std::iota(in_rank_order.begin(), in_rank_order.end(), 0);
      in_rank_order[static_cast<std::size_t>(rank)] = kOwn;
      program.receive_reduce(slice(rank), in_rank_order);
    } else if (rank != shape.root) {
      program.receive_copy(shape.root, slice(rank));
    }
  }
  if (has_second_step(shape.collective)) {
    program.begin_step();
    for_peers(shape, rank, [&](Rank peer) {
      if (in_second_step(shape, rank, peer)) program.send(peer, slice(rank));
    });
    for_peers(shape, rank, [&](Rank peer) {
      if (in_second_step(shape, peer, rank)) program.receive_copy(peer, slice(peer));
    });
  }
  return program;
}

int direct_steps(const Shape& shape) {
  if (shape.ranks == 1) return 0;
  return int{has_first_step(shape.collective)} + int{has_second_step(shape.collective)};
}

Fraction direct_sent(const Shape& shape, Rank rank) {
  const int n = shape.ranks;
  const bool root = rank == shape.root;
  if (n == 1) return 0;
  if (shape.collective == Collective::Broadcast)
    return root ? Fraction{2 * (n - 1), n} : Fraction{n - 2, n};
  if (shape.collective == Collective::Reduce) return root ? Fraction{n - 1, n} : Fraction{1};
  return {phases(shape.collective) * (n - 1), n};
}

void direct_traffic(const Shape& shape, TrafficSink& sink) {
  const int n = shape.ranks;
  if (n == 1) return;
  const auto report = [&](auto&& has_message, bool adds) {
    for (Rank rank = 0; rank < n; ++rank) {
      for_peers(shape, rank, [&](Rank peer) {
        if (has_message(shape, rank, peer)) sink.message(rank, peer, 1.0 / n);
      });
      if (adds) sink.reduce(rank, static_cast<double>(n - 1) / n);
    }
    sink.end_step(1);
  };
  if (has_first_step(shape.collective)) report(in_first_step, is_reduction(shape.collective));
  if (has_second_step(shape.collective)) report(in_second_step, false);
}

Marks direct_marks(const Shape& shape, Rank /*rank*/) {
  // Every sum is whole, and the second step returns it to ranks that it came from.
  Marks marks{.whole_sum = [](int, const Range&) { return true; }};
  if (is_reduction(shape.collective)) marks.push = [](int step, const Range&) { return step == 1; };
  return marks;
}

}  // namespace sluice::algorithms
