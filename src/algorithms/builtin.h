// builtin.h - what each algorithm's file provides, for registry.cc.
//
// Every algorithm is four pure functions of a complete shape: the Program of a rank, and the closed
// forms of its steps, of the share of the buffer that a rank sends, and of its traffic.
#pragma once

#include "sluice/algorithms.h"
#include "sluice/schedule.h"

namespace sluice::algorithms {

Program ring(const Shape& shape, Rank rank);
int ring_steps(const Shape& shape);
Fraction ring_sent(const Shape& shape, Rank rank);
void ring_traffic(const Shape& shape, TrafficSink& sink);

Program recursive_doubling(const Shape& shape, Rank rank);
int recursive_doubling_steps(const Shape& shape);
Fraction recursive_doubling_sent(const Shape& shape, Rank rank);
void recursive_doubling_traffic(const Shape& shape, TrafficSink& sink);

Program halving_doubling_near(const Shape& shape, Rank rank);
Program halving_doubling_far(const Shape& shape, Rank rank);
int halving_doubling_steps(const Shape& shape);
Fraction halving_doubling_sent(const Shape& shape, Rank rank);
void halving_doubling_near_traffic(const Shape& shape, TrafficSink& sink);
void halving_doubling_far_traffic(const Shape& shape, TrafficSink& sink);

Program torus(const Shape& shape, Rank rank);
int torus_steps(const Shape& shape);
Fraction torus_sent(const Shape& shape, Rank rank);
void torus_traffic(const Shape& shape, TrafficSink& sink);

Program double_tree(const Shape& shape, Rank rank);
int double_tree_steps(const Shape& shape);
Fraction double_tree_sent(const Shape& shape, Rank rank);
void double_tree_traffic(const Shape& shape, TrafficSink& sink);

Program direct(const Shape& shape, Rank rank);
int direct_steps(const Shape& shape);
Fraction direct_sent(const Shape& shape, Rank rank);
void direct_traffic(const Shape& shape, TrafficSink& sink);

Program exchange(const Shape& shape, Rank rank);
int exchange_steps(const Shape& shape);
Fraction exchange_sent(const Shape& shape, Rank rank);
void exchange_traffic(const Shape& shape, TrafficSink& sink);

// Between the nodes any other algorithm; registry.cc has one row for each.
Program hierarchical(const Shape& shape, Rank rank, const Algorithm& inner);
int hierarchical_steps(const Shape& shape, const Algorithm& inner);
Fraction hierarchical_sent(const Shape& shape, Rank rank, const Algorithm& inner);
void hierarchical_traffic(const Shape& shape, TrafficSink& sink, const Algorithm& inner);

// Whether the pieces that a ragged grid cuts can be counted in 64 bits.
Status check_hierarchical_grid(const Shape& shape);

// The two halves that most algorithms are made of.
inline bool has_reduce_phase(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::ReduceScatter;
}

inline bool has_gather_phase(Collective collective) {
  return collective == Collective::AllReduce || collective == Collective::AllGather;
}

inline int phases(Collective collective) {
  return int{has_reduce_phase(collective)} + int{has_gather_phase(collective)};
}

}  // namespace sluice::algorithms
