// algorithms.h - the built-in algorithms: pure functions from a shape to Programs.
//
// An algorithm is found by name; a variant is named after a colon: "halving_doubling:far",
// "hierarchical:ring". docs/algorithms.md draws each and gives its steps and bytes.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "sluice/analysis/cost.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "sluice/verify.h"

namespace sluice {

struct Algorithm {
  std::string_view name;
  int version;  // part of a proof's key: raised whenever a Program changes
  std::span<const Collective> collectives;
  bool ordered;        // every sum is rank 0 + rank 1 + ... from left to right
  bool uses_grid;      // without a grid it takes the most square one
  bool uses_segments;  // Shape::segments means something to it

  Program (*program)(const Shape& shape, Rank rank);

  // Closed forms, from the paper and not from the Program; prove() holds the Program to them.
  int (*steps)(const Shape& shape);
  Fraction (*sent)(const Shape& shape, Rank rank);  // bytes sent / bytes of the buffer
  // What each step puts on the links, told without building any Program.
  void (*traffic)(const Shape& shape, TrafficSink& sink);

  bool supports(Collective collective) const;
};

// All of them, in the order in which lists show them.
std::span<const Algorithm> built_in_algorithms();

// By name; the error suggests the nearest one.
Result<const Algorithm*> find_algorithm(std::string_view name);

// The shape with everything filled in that the algorithm needs (a grid), or why it cannot be.
Result<Shape> complete_shape(const Algorithm& algorithm, Shape shape);

// REQUIRES: shape comes from complete_shape().
Schedule build_schedule(const Algorithm& algorithm, const Shape& shape);

// verify() on the built schedule, and its steps and bytes against the closed form.
Proof prove(const Algorithm& algorithm, const Shape& shape);

// The algorithm's closed-form load on the links of a topology.
Load load_of(const Algorithm& algorithm, const Shape& shape, const Topology& topology);

// x rows of y with x * y = n, x <= y and x as large as can be: {y, y, ...}, x of them.
std::vector<int> most_square_grid(int ranks);

}  // namespace sluice
