// double_tree.cc - two binary trees, each with half of the buffer (Sanders, Speck and Traeff,
// 2009), in segments; a segment goes up the tree while an earlier one goes down.
//   Positions in a tree count from 1, in order. An odd position is a leaf. Position p = 2^k (2q+1)
//   has its children 2^(k-1) to its left and right. If the right child is past the end, the top of
//   the rest of its subtree takes its place. So half of all edges join neighbours, a quarter join
//   ranks two apart, and few edges leave a node or cross a thin uplink. In tree A rank r has
//   position r+1. Tree B is the mirror of A for even n, else A shifted by one rank: it swaps even
//   and odd positions, so no rank is an inner rank of both trees.
//   2 floor(log2 n) + segments - 1 steps, where segments are counted per tree; a rank sends at most
//   2 buffers and receives at most 2.
//   Let D be the depth of the tree. A rank at depth d sends segment s up in step s + D - d and down
//   in step s + D + d (counted from 0): the root sends a sum down as soon as it has it.
//
//   n = 6   A:       3           B:     2
//                1       5          0       4
//              0   2   4              1   3   5
//
// Broadcast and reduce: the trees have all ranks but the root, and the root is the parent of both
// tops: floor(log2(n-1)) + segments steps; a rank sends at most 1 buffer and receives at most 1.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "algorithms/builtin.h"

namespace sluice::algorithms {
namespace {

// The ranks of the two trees, in order: all of them for an all_reduce, else all but the root.
struct Members {
  explicit Members(const Shape& shape)
      : rooted{shape.collective != Collective::AllReduce},
        root{shape.root},
        size{rooted ? shape.ranks - 1 : shape.ranks},
        depth{size > 0 ? floor_log2(size) : 0} {}

  // The position of a rank in a tree, and back. REQUIRES: the rank is a member.
  int position(int tree, Rank rank) const {
    const int member = rooted && rank > root ? rank - 1 : rank;
    if (tree == 0) return member + 1;
    if (size % 2 == 0) return size - member;
    return member == 0 ? size : member;
  }
  Rank rank_at(int tree, int position) const {
    int member = position - 1;
    if (tree == 1) member = size % 2 == 0 ? size - position : position % size;
    return rooted && member >= root ? member + 1 : member;
  }

  // The position of the top of a tree: the largest power of two.
  int top() const { return 1 << depth; }
  // REQUIRES: position is not the top.
  int parent(int position) const {
    do {
      const int step = position & -position;
      position += (position & (2 * step)) != 0 ? -step : step;
    } while (position > size);
    return position;
  }
  // The position itself. If it is past the end, the top of the rest of its subtree, which has
  // `step` positions on either side; 0 if nothing of the subtree is left.
  int nearest_within(int position, int step) const {
    while (position > size && step > 1) {
      step /= 2;
      position -= step;
    }
    return position <= size ? position : 0;
  }

  bool rooted;
  Rank root;
  int size;
  int depth;
};

// The neighbours of a rank in one tree. The root of a broadcast or reduce is at depth -1 of both
// trees, above their tops.
struct Neighbours {
  int depth = 0;
  bool has_parent = false;
  Rank parent = 0;
  std::array<Rank, 2> children{};
  int child_count = 0;

  std::span<const Rank> all_children() const {
    return std::span{children}.first(static_cast<std::size_t>(child_count));
  }
};

Neighbours neighbours_of(const Members& members, int tree, Rank rank) {
  Neighbours neighbours;
  if (members.rooted && rank == members.root) {
    neighbours.depth = -1;
    neighbours.children[0] = members.rank_at(tree, members.top());
    neighbours.child_count = 1;
    return neighbours;
  }
  const int position = members.position(tree, rank);
  for (int above = position; above != members.top(); above = members.parent(above))
    ++neighbours.depth;
  neighbours.has_parent = position != members.top() || members.rooted;
  if (neighbours.has_parent) {
    neighbours.parent =
        position != members.top() ? members.rank_at(tree, members.parent(position)) : members.root;
  }
  const auto add_child = [&](int child) {
    neighbours.children[static_cast<std::size_t>(neighbours.child_count++)] =
        members.rank_at(tree, child);
  };
  if (const int half = (position & -position) / 2; half > 0) {
    add_child(position - half);
    if (const int right = members.nearest_within(position + half, half); right > 0)
      add_child(right);
  }
  return neighbours;
}

bool goes_up(Collective collective) { return collective != Collective::Broadcast; }
bool goes_down(Collective collective) { return collective != Collective::Reduce; }

// The steps in which a rank at `depth` sends the first segment up and down; segment s follows s
// steps later.
int up_begin(const Members& members, int depth) { return members.depth - depth; }
int down_begin(const Shape& shape, const Members& members, int depth) {
  return shape.collective == Collective::Broadcast ? depth + 1 : members.depth + depth;
}

}  // namespace

Program double_tree(const Shape& shape, Rank rank) {
  const Members members{shape};
  const int segments = shape.segments;
  Program program{Chunking{2 * segments}};
  const int steps = double_tree_steps(shape);
  if (steps == 0) return program;
  const std::array<Neighbours, 2> in_tree{neighbours_of(members, 0, rank),
                                          neighbours_of(members, 1, rank)};
  for (int step = 0; step < steps; ++step) {
    program.begin_step();
    for (const int tree : {0, 1}) {
      const Neighbours& neighbours = in_tree[static_cast<std::size_t>(tree)];
      const auto with_segment = [&](int begin, auto&& transfer) {
        const int segment = step - begin;
        if (segment >= 0 && segment < segments) transfer(Range{.first = tree * segments + segment});
      };
      if (goes_up(shape.collective)) {
        if (neighbours.has_parent) {
          with_segment(up_begin(members, neighbours.depth),
                       [&](Range range) { program.send(neighbours.parent, range); });
        }
        if (neighbours.child_count > 0) {
          std::vector<Rank> sum{kOwn};
          sum.insert(sum.end(), neighbours.all_children().begin(), neighbours.all_children().end());
          with_segment(up_begin(members, neighbours.depth + 1),
                       [&](Range range) { program.receive_reduce(range, sum); });
        }
      }
      if (goes_down(shape.collective)) {
        if (neighbours.has_parent) {
          with_segment(down_begin(shape, members, neighbours.depth - 1),
                       [&](Range range) { program.receive_copy(neighbours.parent, range); });
        }
        with_segment(down_begin(shape, members, neighbours.depth), [&](Range range) {
          for (const Rank child : neighbours.all_children()) program.send(child, range);
        });
      }
    }
  }
  return program;
}

int double_tree_steps(const Shape& shape) {
  if (shape.ranks == 1) return 0;
  if (shape.collective != Collective::AllReduce)
    return floor_log2(shape.ranks - 1) + shape.segments;
  return 2 * floor_log2(shape.ranks) + shape.segments - 1;
}

Fraction double_tree_sent(const Shape& shape, Rank rank) {
  if (shape.ranks == 1) return 0;
  const Members members{shape};
  int halves = 0;
  for (const int tree : {0, 1}) {
    const Neighbours neighbours = neighbours_of(members, tree, rank);
    if (goes_up(shape.collective) && neighbours.has_parent) ++halves;
    if (goes_down(shape.collective)) halves += neighbours.child_count;
  }
  return {halves, 2};
}

void double_tree_traffic(const Shape& shape, TrafficSink& sink) {
  const Members members{shape};
  const bool one_piece = shape.segments > 1 && sink.begin_pipeline(shape.segments);
  Shape reported = shape;
  if (one_piece) reported.segments = 1;
  const int steps = double_tree_steps(reported);
  const int segments = reported.segments;
  const double share = 0.5 / shape.segments;
  std::vector<std::array<Neighbours, 2>> in_tree;
  if (steps > 0) {
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      in_tree.push_back({neighbours_of(members, 0, rank), neighbours_of(members, 1, rank)});
    }
  }
  // The messages of a rank in one step. If both trees send to the same peer, that is one message.
  std::vector<std::pair<Rank, double>> outgoing;
  const auto add = [&](Rank peer) {
    const auto same_peer = std::find_if(outgoing.begin(), outgoing.end(),
                                        [&](const auto& message) { return message.first == peer; });
    if (same_peer == outgoing.end()) {
      outgoing.emplace_back(peer, share);
    } else {
      same_peer->second += share;
    }
  };
  const auto report = [&](int step, int repeat) {
    const auto active = [&](int begin) { return step >= begin && step < begin + segments; };
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      outgoing.clear();
      for (const Neighbours& neighbours : in_tree[static_cast<std::size_t>(rank)]) {
        if (goes_up(shape.collective)) {
          if (neighbours.has_parent && active(up_begin(members, neighbours.depth)))
            add(neighbours.parent);
          if (active(up_begin(members, neighbours.depth + 1)))
            sink.reduce(rank, share * neighbours.child_count);
        }
        if (goes_down(shape.collective) && active(down_begin(shape, members, neighbours.depth))) {
          for (const Rank child : neighbours.all_children()) add(child);
        }
      }
      for (const auto& [peer, sum] : outgoing) sink.message(rank, peer, sum);
    }
    sink.end_step(repeat);
  };
  // From the step in which all depths send both ways, steps are equal until the first ranks have
  // sent their last segment.
  const int all_begun = 2 * members.depth;
  for (int step = 0; step < steps;) {
    const int equal = step >= all_begun && step < segments ? segments - step : 1;
    report(step, equal);
    step += equal;
  }
  if (one_piece) sink.end_pipeline();
}

Marks double_tree_marks(const Shape& shape, Rank rank) {
  // Sums become whole at the top of a tree. In an all_reduce it sends them down to the ranks that
  // they came from.
  const Members members{shape};
  std::array<bool, 2> is_top{};
  if (double_tree_steps(shape) > 0) {
    for (const int tree : {0, 1}) {
      const auto t = static_cast<std::size_t>(tree);
      is_top[t] = !neighbours_of(members, tree, rank).has_parent;
    }
  }
  const auto at_top = [is_top, segments = shape.segments](int /*step*/, const Range& range) {
    return is_top[static_cast<std::size_t>(range.first / segments)];
  };
  Marks marks{.whole_sum = at_top};
  if (shape.collective == Collective::AllReduce) marks.push = at_top;
  return marks;
}

}  // namespace sluice::algorithms
