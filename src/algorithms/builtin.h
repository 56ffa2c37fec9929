// builtin.h - the functions of each algorithm, for registry.cc, and those that algorithms share.
//
// An algorithm is five pure functions of a complete shape: the Program of a rank, and the closed
// forms of its steps, of the share of the buffer that a rank sends, of its traffic, and of the
// marks of a rank's Program.
#pragma once

#include <bit>
#include <span>

#include "sluice/algorithms.h"
#include "sluice/schedule.h"

namespace sluice::algorithms {

Program ring(const Shape& shape, Rank rank);
int ring_steps(const Shape& shape);
Fraction ring_sent(const Shape& shape, Rank rank);
void ring_traffic(const Shape& shape, TrafficSink& sink);
Marks ring_marks(const Shape& shape, Rank rank);

Program recursive_doubling(const Shape& shape, Rank rank);
int recursive_doubling_steps(const Shape& shape);
Fraction recursive_doubling_sent(const Shape& shape, Rank rank);
void recursive_doubling_traffic(const Shape& shape, TrafficSink& sink);
Marks recursive_doubling_marks(const Shape& shape, Rank rank);

Program halving_doubling_near(const Shape& shape, Rank rank);
Program halving_doubling_far(const Shape& shape, Rank rank);
int halving_doubling_steps(const Shape& shape);
Fraction halving_doubling_sent(const Shape& shape, Rank rank);
void halving_doubling_near_traffic(const Shape& shape, TrafficSink& sink);
void halving_doubling_far_traffic(const Shape& shape, TrafficSink& sink);
Marks halving_doubling_marks(const Shape& shape, Rank rank);

Program torus(const Shape& shape, Rank rank);
int torus_steps(const Shape& shape);
Fraction torus_sent(const Shape& shape, Rank rank);
void torus_traffic(const Shape& shape, TrafficSink& sink);
Marks torus_marks(const Shape& shape, Rank rank);

Program double_tree(const Shape& shape, Rank rank);
int double_tree_steps(const Shape& shape);
Fraction double_tree_sent(const Shape& shape, Rank rank);
void double_tree_traffic(const Shape& shape, TrafficSink& sink);
Marks double_tree_marks(const Shape& shape, Rank rank);

Program direct(const Shape& shape, Rank rank);
int direct_steps(const Shape& shape);
Fraction direct_sent(const Shape& shape, Rank rank);
void direct_traffic(const Shape& shape, TrafficSink& sink);
Marks direct_marks(const Shape& shape, Rank rank);

Program exchange(const Shape& shape, Rank rank);
int exchange_steps(const Shape& shape);
Fraction exchange_sent(const Shape& shape, Rank rank);
void exchange_traffic(const Shape& shape, TrafficSink& sink);
Marks exchange_marks(const Shape& shape, Rank rank);

// `inner` is the algorithm between the nodes; registry.cc has one row for each.
Program hierarchical(const Shape& shape, Rank rank, const Algorithm& inner);
int hierarchical_steps(const Shape& shape, const Algorithm& inner);
Fraction hierarchical_sent(const Shape& shape, Rank rank, const Algorithm& inner);
void hierarchical_traffic(const Shape& shape, TrafficSink& sink, const Algorithm& inner);
Marks hierarchical_marks(const Shape& shape, Rank rank, const Algorithm& inner);

// An error if the pieces of a ragged grid cannot be counted in 64 bits.
Status check_hierarchical_grid(const Shape& shape);

// The two phases of most algorithms.
inline bool has_reduce_phase(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::ReduceScatter;
}

inline bool has_gather_phase(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::AllGather;
}

inline int phases(Collective collective) {
  return int{has_reduce_phase(collective)} + int{has_gather_phase(collective)};
}

// REQUIRES: n >= 1.
constexpr bool is_power_of_two(int n) { return std::has_single_bit(static_cast<unsigned>(n)); }
constexpr int floor_log2(int n) { return std::bit_width(static_cast<unsigned>(n)) - 1; }
constexpr int ceil_log2(int n) { return is_power_of_two(n) ? floor_log2(n) : floor_log2(n) + 1; }

// The ranks and chunks of an outer algorithm on which an inner one runs.
struct Embedding {
  std::span<const Rank> ranks;  // the inner algorithm's rank i is this rank
  int first_chunk = 0;  // inner chunk c is chunks_each chunks, from first_chunk + c * chunks_each
  int chunks_each = 1;
};

// Adds the operations of one step of the inner Program to the current step of the outer Program.
// REQUIRES: the outer Program has the scratch buffers of the inner one, in the same order.
void embed_step(Program& outer, const Program& inner, int step, const Embedding& embedding);

// Adds every step of the inner Program to the outer Program as a step of its own.
void embed(Program& outer, const Program& inner, const Embedding& embedding);

}  // namespace sluice::algorithms
