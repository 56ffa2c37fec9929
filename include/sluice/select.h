// select.h - which algorithm, for which size, on which links.
//
// Selection is a pure function of its inputs, which all ranks agree on, so all ranks choose alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/algorithms.h"
#include "sluice/cost.h"

namespace sluice {

struct Candidate {
  const Algorithm* algorithm = nullptr;
  Shape shape;  // complete, segments chosen
  int lanes = 1;
  double seconds = 0;  // predicted
};

// The closed-form loads of every algorithm that can do the collective, ready to be priced for any
// number of bytes. Building it costs a few ranks^2 operations at the most; pricing is cheap.
class Selector {
 public:
  Selector(Collective collective, const Topology& topology, const CostConstants& constants,
           Rank root = 0);

  // All algorithms, cheapest first; ties in the order of algorithms().
  std::vector<Candidate> candidates(std::int64_t bytes) const;
  Candidate choose(std::int64_t bytes) const;

  // From `bytes` on, the named algorithm is the cheapest, until the next flip.
  struct Flip {
    std::int64_t bytes = 0;
    const Algorithm* algorithm = nullptr;
  };
  std::vector<Flip> flips(std::int64_t least, std::int64_t most) const;

 private:
  struct Priced {
    const Algorithm* algorithm;
    Shape shape;
    Load load;
  };
  Candidate cheapest(const Algorithm& algorithm, std::int64_t bytes) const;

  CostConstants constants_;
  std::vector<Priced> priced_;  // grouped by algorithm, one entry a segment count
};

}  // namespace sluice
