// select.h - chooses the fastest algorithm for a buffer size and a topology.
//
// The choice is a pure function of its inputs, so ranks with the same inputs make the same choice.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/algorithms.h"
#include "sluice/analysis/cost.h"
#include "sluice/version.h"

namespace sluice {

struct Candidate {
  const Algorithm* algorithm = nullptr;
  Shape shape;         // complete; its number of segments is chosen
  double seconds = 0;  // predicted
};

// The shape, completed for an algorithm on these nodes. The nodes become the grid if there are
// several, at least one has several ranks, and the algorithm can use them. The error explains why
// there is no such shape.
SLUICE_API Result<Shape> shape_on(const Algorithm& algorithm, Shape shape,
                                  const Topology& topology);

struct SelectorOptions {
  Rank root = 0;
  const Algorithm* file = nullptr;  // also a candidate: the schedule in a file
};

// Holds a prediction of every algorithm that supports the collective for all sizes, so that asking
// for many sizes is cheap. Building it takes a few ranks^2 operations at most.
class SLUICE_API Selector {
 public:
  // Throws Error if no shape of an algorithm fits the topology.
  Selector(Collective collective, const Topology& topology, const CostConstants& constants,
           const SelectorOptions& options = {});

  // One candidate for each algorithm, fastest first; ties in the order of built_in_algorithms(),
  // and a file last.
  std::vector<Candidate> candidates(std::int64_t bytes) const;
  // The fastest candidate.
  Candidate choose(std::int64_t bytes) const;

  // The smallest size with a different choice, and the choice from there on.
  struct Crossover {
    std::int64_t bytes = 0;
    Candidate candidate;
  };
  // The sizes in [least, most] at which the chosen algorithm changes. The first entry is `least`
  // with its choice.
  std::vector<Crossover> crossovers(std::int64_t least, std::int64_t most) const;
  // The sizes at which the algorithm or its shape changes: the number of segments grows with the
  // size.
  std::vector<Crossover> shape_crossovers(std::int64_t least, std::int64_t most) const;

 private:
  struct Priced {
    const Algorithm* algorithm;
    Shape shape;
    std::int64_t most_bytes = 0;
    // Measured links price the load; other links have a curve.
    Load load;
    CostConstants constants;
    TimeCurve curve;
  };
  Candidate cheapest(const Algorithm& algorithm, std::int64_t bytes) const;
  template <class Same>
  std::vector<Crossover> find_crossovers(std::int64_t least, std::int64_t most, Same&& same) const;

  std::vector<const Algorithm*> algorithms_;
  std::vector<Priced> priced_;  // grouped by algorithm, one entry for each number of segments
};

}  // namespace sluice
