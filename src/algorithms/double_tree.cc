// double_tree.cc - two binary trees, each carrying half of the buffer (Sanders, Speck and Traeff,
// 2009), in segments, the way up and the way down overlapped.
//   Places count from 1, in order: an odd place is a leaf, place p = 2^k (2q+1) has its children
//   2^(k-1) to its left and right, or, where that is past the end, what is left of the right one's
//   subtree. So half of all edges join neighbours, a quarter those two apart, and few leave a node
//   or cross a thin uplink. In tree A rank r has place r+1. In tree B even and odd change: it is
//   the mirror of A for even n, else A moved on by one rank. So no rank is inner in both. 2
//   floor(log2 n) + segments - 1 steps, segments counted a tree; at most 2 buffers sent and 2
//   received a rank.
//   With D the depth of the tree, a rank at depth d sends segment s up in step s + D - d and down
//   in step s + D + d (counted from 0): the root's sum of a segment goes down as soon as it is
//   there.
//
//   n = 6   A:       3           B:     2
//                1       5          0       4
//              0   2   4              1   3   5
//
// Broadcast and reduce: the trees span the ranks other than the root, and the root feeds (or is fed
// by) the tops of both: floor(log2(n-1)) + segments steps, at most 1 buffer sent and received.
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "algorithms/builtin.h"

namespace sluice::algorithms {
namespace {

// The two trees' members, in order: all ranks, or all but the root.
struct Members {
  explicit Members(const Shape& shape)
      : rooted{shape.collective != Collective::AllReduce},
        root{shape.root},
        size{rooted ? shape.ranks - 1 : shape.ranks},
        depth{size > 0 ? floor_log2(size) : 0} {}

  // Place in a tree of a rank, and back. REQUIRES: the rank is a member.
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

  // The place of a tree's top: the largest power of two.
  int top() const { return 1 << depth; }
  // REQUIRES: position is not the top.
  int parent(int position) const {
    do {
      const int step = position & -position;
      position += (position & (2 * step)) != 0 ? -step : step;
    } while (position > size);
    return position;
  }
  // That place, or the top of what is left of its subtree, `step` on either side; 0: nothing is.
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

// A rank's place in one tree. Above the top of a tree is the root of a broadcast or reduce, which
// is at depth -1 of both trees and has their tops for children.
struct Place {
  int depth = 0;
  bool has_parent = false;
  Rank parent = 0;
  std::array<Rank, 2> children{};
  int child_count = 0;

  std::span<const Rank> all_children() const {
    return std::span{children}.first(static_cast<std::size_t>(child_count));
  }
};

Place place_of(const Members& members, int tree, Rank rank) {
  Place place;
  if (members.rooted && rank == members.root) {
    place.depth = -1;
    place.children[0] = members.rank_at(tree, members.top());
    place.child_count = 1;
    return place;
  }
  const int position = members.position(tree, rank);
  for (int above = position; above != members.top(); above = members.parent(above)) ++place.depth;
  place.has_parent = position != members.top() || members.rooted;
  if (place.has_parent) {
    place.parent =
        position != members.top() ? members.rank_at(tree, members.parent(position)) : members.root;
  }
  const auto add_child = [&](int child) {
    place.children[static_cast<std::size_t>(place.child_count++)] = members.rank_at(tree, child);
  };
  if (const int half = (position & -position) / 2; half > 0) {
    add_child(position - half);
    if (const int right = members.nearest_within(position + half, half); right > 0)
      add_child(right);
  }
  return place;
}

bool goes_up(Collective collective) { return collective != Collective::Broadcast; }
bool goes_down(Collective collective) { return collective != Collective::Reduce; }

// Steps in which a rank at depth d sends up and down the first segment; segment s follows s later.
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
  const std::array<Place, 2> places{place_of(members, 0, rank), place_of(members, 1, rank)};
  for (int step = 0; step < steps; ++step) {
    program.begin_step();
    for (const int tree : {0, 1}) {
      const Place& place = places[static_cast<std::size_t>(tree)];
      const auto with_segment = [&](int begin, auto&& transfer) {
        const int segment = step - begin;
        if (segment >= 0 && segment < segments) transfer(Range{.first = tree * segments + segment});
      };
      if (goes_up(shape.collective)) {
        if (place.has_parent) {
          with_segment(up_begin(members, place.depth),
                       [&](Range range) { program.send(place.parent, range); });
        }
        if (place.child_count > 0) {
          std::vector<Rank> sum{kOwn};
          sum.insert(sum.end(), place.all_children().begin(), place.all_children().end());
          with_segment(up_begin(members, place.depth + 1),
                       [&](Range range) { program.receive_reduce(range, sum); });
        }
      }
      if (goes_down(shape.collective)) {
        if (place.has_parent) {
          with_segment(down_begin(shape, members, place.depth - 1),
                       [&](Range range) { program.receive_copy(place.parent, range); });
        }
        with_segment(down_begin(shape, members, place.depth), [&](Range range) {
          for (const Rank child : place.all_children()) program.send(child, range);
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
    const Place place = place_of(members, tree, rank);
    if (goes_up(shape.collective) && place.has_parent) ++halves;
    if (goes_down(shape.collective)) halves += place.child_count;
  }
  return {halves, 2};
}

void double_tree_traffic(const Shape& shape, TrafficSink& sink) {
  const Members members{shape};
  const int steps = double_tree_steps(shape);
  const int segments = shape.segments;
  const double share = 0.5 / segments;
  std::vector<std::array<Place, 2>> places;
  if (steps > 0) {
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      places.push_back({place_of(members, 0, rank), place_of(members, 1, rank)});
    }
  }
  // What a rank sends in one step: to one peer in both trees is still one message.
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
  const auto tell = [&](int step, int repeat) {
    const auto active = [&](int begin) { return step >= begin && step < begin + segments; };
    for (Rank rank = 0; rank < shape.ranks; ++rank) {
      outgoing.clear();
      for (const Place& place : places[static_cast<std::size_t>(rank)]) {
        if (goes_up(shape.collective)) {
          if (place.has_parent && active(up_begin(members, place.depth))) add(place.parent);
          if (active(up_begin(members, place.depth + 1)))
            sink.reduce(rank, share * place.child_count);
        }
        if (goes_down(shape.collective) && active(down_begin(shape, members, place.depth))) {
          for (const Rank child : place.all_children()) add(child);
        }
      }
      for (const auto& [peer, sum] : outgoing) sink.message(rank, peer, sum);
    }
    sink.end_step(repeat);
  };
  // Once all depths are at work both ways, steps are alike until the first segment count is used
  // up.
  const int all_begun = 2 * members.depth;
  for (int step = 0; step < steps;) {
    const int alike = step >= all_begun && step < segments ? segments - step : 1;
    tell(step, alike);
    step += alike;
  }
}

}  // namespace sluice::algorithms
