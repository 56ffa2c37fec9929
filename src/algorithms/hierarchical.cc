// hierarchical.cc - `direct` inside the nodes, any other (inner) algorithm between the nodes.
//   (1) reduce-scatter inside each node, one step; (2) the inner algorithm between the nodes, on
//   every slice at the same time; (3) all-gather inside each node, one step.
//   Steps: those of the inner algorithm, plus 2 if a node has more than one rank. With a
//   bandwidth-optimal inner algorithm over N nodes, a rank of a node with k ranks sends
//   2(1 - 1/(Nk)) of the buffer, which is 2(n-1)/n if all nodes are equal.
//
// Nodes may be ragged. Each node cuts the buffer by its own number of ranks. A slice is a piece
// between two neighbouring cuts of any node. In each node one rank owns the slice, and these owners
// run the inner algorithm on it.
//
//   nodes 2 + 3     ranks 0 1      |-----0-----|-----1-----|
//                   ranks 2 3 4    |---2---|---3---|---4---|
//                   slices         |   s0  |s1 |s2 |   s3  |    s0: 0, 2   s1: 0, 3   s2: 1, 3
//                                                               s3: 1, 4
#include <algorithm>
#include <numeric>
#include <vector>

#include "algorithms/builtin.h"
#include "base/format.h"

namespace sluice::algorithms {
namespace {

// The positions of cuts are in units of 1/parts of the buffer, so that all of them are whole
// numbers.
std::int64_t parts_of(const std::vector<int>& grid) {
  std::int64_t parts = 1;
  for (const int ranks : grid) parts = std::lcm(parts, static_cast<std::int64_t>(ranks));
  return parts;
}

struct Slices {
  explicit Slices(const std::vector<int>& grid) : parts{parts_of(grid)} {
    for (const int ranks : grid) {
      for (int i = 0; i < ranks; ++i) cuts.push_back(parts / ranks * i);
    }
    std::sort(cuts.begin(), cuts.end());
    cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  }

  int count() const { return static_cast<int>(cuts.size()); }
  std::int64_t width(int slice) const {
    const auto s = static_cast<std::size_t>(slice);
    return (s + 1 < cuts.size() ? cuts[s + 1] : parts) - cuts[s];
  }
  // The first slice of the i-th rank of a node with `ranks` ranks.
  int first_of(int ranks, int i) const {
    const auto cut = std::lower_bound(cuts.begin(), cuts.end(), parts / ranks * i);
    return static_cast<int>(cut - cuts.begin());
  }
  // The index of the rank that owns a slice, in a node with `ranks` ranks.
  int owner_of(int ranks, int slice) const {
    return static_cast<int>(cuts[static_cast<std::size_t>(slice)] / (parts / ranks));
  }

  std::int64_t parts;
  std::vector<std::int64_t> cuts;
};

struct Node {
  int index = 0;
  int ranks = 0;
  Rank first_rank = 0;
};

Node node_of(const Shape& shape, Rank rank) {
  Node node{0, shape.grid.front(), 0};
  while (rank >= node.first_rank + node.ranks) {
    node.first_rank += node.ranks;
    node.ranks = shape.grid[static_cast<std::size_t>(++node.index)];
  }
  return node;
}

bool has_node_steps(const Shape& shape) {
  return std::any_of(shape.grid.begin(), shape.grid.end(), [](int ranks) { return ranks > 1; });
}

Shape inner_shape(const Shape& shape, const Algorithm& inner) {
  const int nodes = static_cast<int>(shape.grid.size());
  Shape between{.collective = Collective::AllReduce, .ranks = nodes, .segments = shape.segments};
  if (inner.uses_grid) between.grid = most_square_grid(nodes);
  return between;
}

Chunking layout_of(const Slices& slices, int chunks_per_slice) {
  std::vector<std::int64_t> weights;
  for (int slice = 0; slice < slices.count(); ++slice) {
    weights.insert(weights.end(), static_cast<std::size_t>(chunks_per_slice), slices.width(slice));
  }
  return Chunking{std::move(weights)};
}

}  // namespace

Program hierarchical(const Shape& shape, Rank rank, const Algorithm& inner) {
  const Slices slices{shape.grid};
  const Node node = node_of(shape, rank);
  const int local = rank - node.first_rank;
  const Program inner_program = inner.program(inner_shape(shape, inner), node.index);
  const int chunks_per_slice = inner_program.chunking().chunks();
  const auto part_of = [&](int i) {  // the chunks of the node's i-th rank
    const int first = slices.first_of(node.ranks, i);
    const int end = i + 1 < node.ranks ? slices.first_of(node.ranks, i + 1) : slices.count();
    return Range{.first = first * chunks_per_slice, .count = (end - first) * chunks_per_slice};
  };
  const auto for_others = [&](auto&& visit) {
    for (int i = 0; i < node.ranks; ++i) {
      if (i != local) visit(i);
    }
  };

  Program program{layout_of(slices, chunks_per_slice), inner_program.scratch()};
  if (has_node_steps(shape)) {
    program.begin_step();
    for_others([&](int i) { program.send(node.first_rank + i, part_of(i)); });
    std::vector<Rank> sum;
    for (int i = 0; i < node.ranks; ++i) sum.push_back(i == local ? kOwn : node.first_rank + i);
    if (node.ranks > 1) program.receive_reduce(part_of(local), sum);
  }

  const Range own = part_of(local);
  const int first_slice = own.first / chunks_per_slice;
  const int end_slice = first_slice + own.count / chunks_per_slice;
  std::vector<std::vector<Rank>> owners;  // of each slice of this rank, in each node
  for (int slice = first_slice; slice < end_slice; ++slice) {
    std::vector<Rank>& group = owners.emplace_back();
    Rank first_rank = 0;
    for (const int ranks : shape.grid) {
      group.push_back(first_rank + slices.owner_of(ranks, slice));
      first_rank += ranks;
    }
  }
  for (int step = 0; step < inner_program.steps(); ++step) {
    program.begin_step();
    for (int slice = first_slice; slice < end_slice; ++slice) {
      embed_step(program, inner_program, step,
                 {.ranks = owners[static_cast<std::size_t>(slice - first_slice)],
                  .first_chunk = slice * chunks_per_slice});
    }
  }

  if (has_node_steps(shape)) {
    program.begin_step();
    for_others([&](int i) { program.send(node.first_rank + i, own); });
    for_others([&](int i) { program.receive_copy(node.first_rank + i, part_of(i)); });
  }
  return program;
}

int hierarchical_steps(const Shape& shape, const Algorithm& inner) {
  return (has_node_steps(shape) ? 2 : 0) + inner.steps(inner_shape(shape, inner));
}

Fraction hierarchical_sent(const Shape& shape, Rank rank, const Algorithm& inner) {
  const Node node = node_of(shape, rank);
  const Fraction between = inner.sent(inner_shape(shape, inner), node.index);
  return Fraction{2 * (node.ranks - 1), node.ranks} + between * Fraction{1, node.ranks};
}

void hierarchical_traffic(const Shape& shape, TrafficSink& sink, const Algorithm& inner) {
  std::vector<Rank> first_rank(shape.grid.size(), 0);
  std::partial_sum(shape.grid.begin(), shape.grid.end() - 1, first_rank.begin() + 1);

  const auto inside_nodes = [&](bool reduces) {
    for (std::size_t node = 0; node < shape.grid.size(); ++node) {
      const int k = shape.grid[node];
      for (int a = 0; a < k; ++a) {
        for (int b = 0; b < k; ++b) {
          if (a != b) sink.message(first_rank[node] + a, first_rank[node] + b, 1.0 / k);
        }
        if (reduces) sink.reduce(first_rank[node] + a, static_cast<double>(k - 1) / k);
      }
    }
    sink.end_step(1);
  };

  // A message of the inner algorithm between two nodes becomes one message for every pair of their
  // ranks whose parts of the buffer overlap.
  class BetweenNodes final : public TrafficSink {
   public:
    BetweenNodes(const Shape& shape, const std::vector<Rank>& first_rank, TrafficSink& out)
        : grid_{shape.grid}, first_rank_{first_rank}, out_{out} {}

    void message(Rank from, Rank to, double share) override {
      const auto f = static_cast<std::size_t>(from);
      const auto t = static_cast<std::size_t>(to);
      for (int a = 0, b = 0; a < grid_[f] && b < grid_[t];) {
        const double begin = std::max(part(f, a), part(t, b));
        const std::int64_t end_a = std::int64_t{a + 1} * grid_[t];
        const std::int64_t end_b = std::int64_t{b + 1} * grid_[f];
        const double end = end_a < end_b ? part(f, a + 1) : part(t, b + 1);
        out_.message(first_rank_[f] + a, first_rank_[t] + b, share * (end - begin));
        a += end_a <= end_b ? 1 : 0;
        b += end_b <= end_a ? 1 : 0;
      }
    }
    void reduce(Rank node, double share) override {
      const auto i = static_cast<std::size_t>(node);
      for (int a = 0; a < grid_[i]; ++a) out_.reduce(first_rank_[i] + a, share / grid_[i]);
    }
    void end_step(int repeat) override { out_.end_step(repeat); }
    bool begin_pipeline(int pieces) override { return out_.begin_pipeline(pieces); }
    void end_pipeline() override { out_.end_pipeline(); }

   private:
    double part(std::size_t node, int i) const { return static_cast<double>(i) / grid_[node]; }

    const std::vector<int>& grid_;
    const std::vector<Rank>& first_rank_;
    TrafficSink& out_;
  };

  if (has_node_steps(shape)) inside_nodes(true);
  BetweenNodes between{shape, first_rank, sink};
  inner.traffic(inner_shape(shape, inner), between);
  if (has_node_steps(shape)) inside_nodes(false);
}

Status check_hierarchical_grid(const Shape& shape) {
  // With fewer parts, weights, their sums and products of fractions fit into 64 bits.
  constexpr std::int64_t kMostParts = 1'000'000'000;
  std::int64_t parts = 1;
  for (const int ranks : shape.grid) {
    parts = std::lcm(parts, static_cast<std::int64_t>(ranks));
    if (parts > kMostParts) {
      return {Code::InvalidArgument,
              base::format(
                  "the common multiple of the ranks of this grid's nodes is above {}: use nodes of "
                  "fewer different sizes",
                  kMostParts)};
    }
  }
  return {};
}

Marks hierarchical_marks(const Shape& shape, Rank rank, const Algorithm& inner) {
  if (shape.grid.size() == 1) return direct_marks(shape, rank);
  // Sums become whole between the nodes. A step and a chunk of the inner algorithm are the same
  // there, counted from the first step between nodes and from the first chunk of the slice.
  const Shape between = inner_shape(shape, inner);
  const int index = node_of(shape, rank).index;
  const Marks marks = inner.marks(between, index);
  const int first = has_node_steps(shape) ? 1 : 0;
  const int end = first + inner.steps(between);
  const int chunks_per_slice = inner.program(between, index).chunking().chunks();
  const auto embedded = [=](const auto& mark) -> std::function<bool(int, const Range&)> {
    if (!mark) return {};
    return [=](int step, Range range) {
      range.first %= chunks_per_slice;
      return first <= step && step < end && mark(step - first, range);
    };
  };
  return {.whole_sum = embedded(marks.whole_sum), .push = embedded(marks.push)};
}

}  // namespace sluice::algorithms
