// halving_doubling.cc - recursive halving, then recursive doubling.
//   2 ceil(log2 n) steps; each rank sends exactly 2(n-1)/n of the buffer, for every n.
//
// Powers of two: the classic pattern (Thakur, Rabenseifner and Gropp, 2005). In each step a rank
// exchanges half of its remaining chunks with a partner: near-first (distance 1, 2, 4, ..., so that
// the longest messages go to the nearest rank) or far-first (n/2, ..., 2, 1). The doubling runs the
// halving backwards.
//
//   n = 4, near-first   0 <-> 1, 2 <-> 3: two chunks   |   0 <-> 2, 1 <-> 3: one   |   and back
//
// Every other n: the circulant pattern (Traeff, arXiv 2410.14234). With s' chunks left and
// s = ceil(s'/2), rank r sends chunks r+s ... r+s'-1 to rank r+s, and adds the message of r-s to
// chunks r ... r+(s'-s)-1, until only chunk r is left. The doubling again runs the halving
// backwards.
//
//   n = 5: s = 3, 2, 1   rank 0: c3 c4 -> 3   |   c2 -> 2   |   c1 -> 1   |   and back
#include <vector>

#include "algorithms/builtin.h"

namespace sluice::algorithms {
namespace {

enum class Order : std::uint8_t { NearFirst, FarFirst };

// One halving step of one rank: it sends `given`, and adds a message to `kept`.
struct Halving {
  Rank to;
  Rank from;
  Range given;
  Range kept;
};

int bit_reversed(int value, int bits) {
  int reversed = 0;
  for (int bit = 0; bit < bits; ++bit) reversed |= ((value >> bit) & 1) << (bits - 1 - bit);
  return reversed;
}

std::vector<Halving> classic(int n, Rank rank, Order order) {
  std::vector<Halving> halvings;
  Range left{.first = 0, .count = n};
  for (int step = 0; left.count > 1; ++step) {
    const int distance = order == Order::NearFirst ? 1 << step : n >> (step + 1);
    const Rank partner = rank ^ distance;
    const int half = left.count / 2;
    const Range low{.first = left.first, .count = half};
    const Range high{.first = left.first + half, .count = half};
    const bool keeps_low = (rank & distance) == 0;
    halvings.push_back({partner, partner, keeps_low ? high : low, keeps_low ? low : high});
    left = keeps_low ? low : high;
  }
  return halvings;
}

std::vector<Halving> circulant(int n, Rank rank) {
  std::vector<Halving> halvings;
  for (int left = n; left > 1;) {
    const int skip = (left + 1) / 2;
    const int given = left - skip;
    halvings.push_back({(rank + skip) % n, (rank + n - skip) % n,
                        Range{.first = (rank + skip) % n, .count = given},
                        Range{.first = rank, .count = given}});
    left = skip;
  }
  return halvings;
}

Program halving_doubling(const Shape& shape, Rank rank, Order order) {
  const int n = shape.ranks;
  const bool power = is_power_of_two(n);
  const auto halvings = power ? classic(n, rank, order) : circulant(n, rank);

  // After near-first halving, the chunk of rank r is r with its bits reversed. An all_reduce allows
  // that. Other collectives need chunk r at rank r, so their ranges become single chunks.
  const bool scattered =
      power && order == Order::NearFirst && shape.collective != Collective::AllReduce;
  const auto each = [&](const Range& range, auto&& transfer) {
    if (!scattered) return transfer(range);
    for (int c = range.first; c < range.first + range.count; ++c) {
      transfer(Range{.first = bit_reversed(c, floor_log2(n))});
    }
  };

  Program program{Chunking{n}};
  if (has_reduce_phase(shape.collective)) {
    for (const Halving& halving : halvings) {
      program.begin_step();
      const Rank sum[] = {kOwn, halving.from};
      each(halving.given, [&](Range range) { program.send(halving.to, range); });
      each(halving.kept, [&](Range range) { program.receive_reduce(range, sum); });
    }
  }
  if (has_gather_phase(shape.collective)) {
    for (auto halving = halvings.rbegin(); halving != halvings.rend(); ++halving) {
      program.begin_step();
      each(halving->kept, [&](Range range) { program.send(halving->from, range); });
      each(halving->given, [&](Range range) { program.receive_copy(halving->to, range); });
    }
  }
  return program;
}

void halving_doubling_traffic(const Shape& shape, TrafficSink& sink, Order order) {
  const int n = shape.ranks;
  struct Step {
    int distance;
    int chunks;
  };
  std::vector<Step> steps;
  for (int left = n; left > 1; left = (left + 1) / 2) {
    const int skip = (left + 1) / 2;
    const bool near_first = is_power_of_two(n) && order == Order::NearFirst;
    steps.push_back({near_first ? n / left : skip, left / 2});
  }
  const auto report = [&](const Step& step, bool reduces) {
    for (Rank rank = 0; rank < n; ++rank) {
      const Rank to = is_power_of_two(n) ? rank ^ step.distance : (rank + step.distance) % n;
      const double share = static_cast<double>(step.chunks) / n;
      if (reduces) {
        sink.message(rank, to, share);
        sink.reduce(rank, share);
      } else {
        sink.message(to, rank, share);
      }
    }
    sink.end_step(1);
  };
  if (has_reduce_phase(shape.collective)) {
    for (const Step& step : steps) report(step, true);
  }
  if (has_gather_phase(shape.collective)) {
    for (auto step = steps.rbegin(); step != steps.rend(); ++step) report(*step, false);
  }
}

}  // namespace

Program halving_doubling_near(const Shape& shape, Rank rank) {
  return halving_doubling(shape, rank, Order::NearFirst);
}

Program halving_doubling_far(const Shape& shape, Rank rank) {
  return halving_doubling(shape, rank, Order::FarFirst);
}

int halving_doubling_steps(const Shape& shape) {
  return phases(shape.collective) * ceil_log2(shape.ranks);
}

Fraction halving_doubling_sent(const Shape& shape, Rank /*rank*/) {
  return {phases(shape.collective) * (shape.ranks - 1), shape.ranks};
}

void halving_doubling_near_traffic(const Shape& shape, TrafficSink& sink) {
  halving_doubling_traffic(shape, sink, Order::NearFirst);
}

void halving_doubling_far_traffic(const Shape& shape, TrafficSink& sink) {
  halving_doubling_traffic(shape, sink, Order::FarFirst);
}

Marks halving_doubling_marks(const Shape& shape, Rank /*rank*/) {
  // The last halving completes a chunk, and the first doubling returns it to its last source. In
  // later doublings the sent range also has chunks from other ranks.
  const int last_halving = ceil_log2(shape.ranks) - 1;
  Marks marks{.whole_sum = [=](int step, const Range&) { return step == last_halving; }};
  if (shape.collective == Collective::AllReduce)
    marks.push = [=](int step, const Range&) { return step == last_halving + 1; };
  return marks;
}

}  // namespace sluice::algorithms
