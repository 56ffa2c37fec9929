// select.h - which algorithm, for which size, on which links.
//
// Selection is a pure function of its inputs, which all ranks agree on, so all ranks choose alike.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sluice/algorithms.h"
#include "sluice/analysis/cost.h"

namespace sluice {

struct Candidate {
  const Algorithm* algorithm = nullptr;
  Shape shape;  // complete, segments chosen
  int lanes = 1;
  double seconds = 0;  // predicted
};

// The shape completed for those nodes: they are its grid where there is something to gain from it
// (several nodes, some with several ranks) and the algorithm can use it. Or why there is none.
Result<Shape> shape_on(const Algorithm& algorithm, Shape shape, const Topology& topology);

// The closed-form loads of every algorithm that can do the collective, ready to be priced for any
// number of bytes. Building it costs a few ranks^2 operations at the most; pricing is cheap.
struct SelectorOptions {
  Rank root = 0;
  bool lanes = true;  // consider several
};

class Selector {
 public:
  Selector(Collective collective, const Topology& topology, const CostConstants& constants,
           const SelectorOptions& options = {});

  // All algorithms, cheapest first; ties in the order of built_in_algorithms().
  std::vector<Candidate> candidates(std::int64_t bytes) const;
  Candidate choose(std::int64_t bytes) const;

  // From `bytes` on, the candidate's algorithm is the cheapest, until the next flip; the candidate
  // is the one of that size.
  struct Flip {
    std::int64_t bytes = 0;
    Candidate candidate;
  };
  std::vector<Flip> flips(std::int64_t least, std::int64_t most) const;
  // The same for the algorithm and its shape: segments grow with the size.
  std::vector<Flip> shape_flips(std::int64_t least, std::int64_t most) const;

 private:
  struct Priced {
    const Algorithm* algorithm;
    Shape shape;
    Load load;
    CostConstants constants;
    std::int64_t most_bytes;
  };
  Candidate cheapest(const Algorithm& algorithm, std::int64_t bytes) const;
  template <class Same>
  std::vector<Flip> changes(std::int64_t least, std::int64_t most, Same&& same) const;

  bool lanes_;
  std::vector<Priced> priced_;  // grouped by algorithm, one entry a segment count
};

}  // namespace sluice
