// embed.cc - runs one algorithm inside another.
#include <algorithm>
#include <vector>

#include "algorithms/builtin.h"

namespace sluice::algorithms {

void embed_step(Program& outer, const Program& inner, int step, const Embedding& embedding) {
  const auto rank_of = [&](Rank rank) {
    return rank == kOwn ? kOwn : embedding.ranks[static_cast<std::size_t>(rank)];
  };
  // A range that wraps around the inner chunks becomes two ranges of outer chunks, on both sides.
  const auto for_pieces = [&](const Range& range, auto&& transfer) {
    const int chunks = inner.chunking().chunks();
    const int each = embedding.chunks_each;
    const int before_wrap = std::min(range.count, chunks - range.first);
    const int first = embedding.first_chunk;
    transfer(Range{range.buffer, first + range.first * each, before_wrap * each});
    const int wrapped = range.count - before_wrap;
    if (wrapped > 0) transfer(Range{range.buffer, first, wrapped * each});
  };

  for (const Send& send : inner.sends(step)) {
    for_pieces(send.range, [&](Range piece) { outer.send(rank_of(send.peer), piece); });
  }
  std::vector<Rank> ranks;
  for (const Write& receive : inner.receives(step)) {
    ranks.clear();
    for (const Rank source : inner.sources(receive)) ranks.push_back(rank_of(source));
    for_pieces(receive.range, [&](Range piece) {
      if (receive.combine == Combine::Copy) {
        outer.receive_copy(ranks.front(), piece);
      } else {
        outer.receive_reduce(piece, ranks);
      }
    });
  }
  for (const Write& local : inner.locals(step)) {
    for_pieces(local.range, [&](Range piece) {
      if (local.combine == Combine::Copy) {
        outer.local_copy(piece, inner.sources(local).front());
      } else {
        outer.local_reduce(piece, inner.sources(local));
      }
    });
  }
}

void embed(Program& outer, const Program& inner, const Embedding& embedding) {
  for (int step = 0; step < inner.steps(); ++step) {
    outer.begin_step();
    embed_step(outer, inner, step, embedding);
  }
}

}  // namespace sluice::algorithms
