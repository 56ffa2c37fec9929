// algorithm_override.h - which algorithm the user wants, whatever is cheapest.
//
// "ring" for every size, or a list in which each may be limited to a range of sizes, from the first
// up to but not including the second: "exchange@-4K,ring@4K-1M,direct@1M-".
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "bootstrap/environment.h"
#include "sluice/algorithms.h"
#include "sluice/status.h"

namespace sluice::engine {

struct AlgorithmOverride {
  const Algorithm* algorithm = nullptr;
  std::int64_t least = 0;
  std::int64_t end = std::numeric_limits<std::int64_t>::max();
};

Result<std::vector<AlgorithmOverride>> parse_overrides(std::string_view text);

// Those of SLUICE_ALGORITHM.
Result<std::vector<AlgorithmOverride>> overrides_of(const bootstrap::Environment& environment);

// The first that holds for the collective and its bytes; null: none does.
const Algorithm* overriding(const std::vector<AlgorithmOverride>& overrides, Collective collective,
                            std::int64_t bytes);

}  // namespace sluice::engine
