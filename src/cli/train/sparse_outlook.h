// sparse_outlook.h - whether sending only the largest chunks of a gradient pays on given links.
#pragma once

#include <cstdint>
#include <string>

#include "sluice/analysis/select.h"

namespace sluice::cli {

struct SparseOutlook {
  double sparsity = 0;
  std::int64_t sent_bytes = 0;  // chosen chunks and the norms of all
  double dense_s = 0;
  double sparse_s = 0;    // `choosing_s` included
  double choosing_s = 0;  // what every rank does besides, with no link in use

  bool pays() const { return sparse_s < dense_s; }
};

// Of an all-reduce of `bytes` of f32, predicted. REQUIRES: `selector` is for all_reduce;
// 0 <= sparsity < 1; chunk, in elements, > 0.
SparseOutlook sparse_outlook(const Selector& selector, const CostConstants& constants,
                             std::int64_t bytes, double sparsity, std::int64_t chunk);

// The outlook in a sentence or two.
std::string show(const SparseOutlook& outlook);

}  // namespace sluice::cli
