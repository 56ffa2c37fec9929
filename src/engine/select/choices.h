// algorithm_override.h - which algorithm the user wants, whatever is cheapest.
//
// "ring" for every size, or a list in which each may be limited to a range of sizes, from the first
// up to but not including the second: "exchange@-4K,ring@4K-1M,direct@1M-".
//
// choices.h - which algorithm a rank runs for which collective and size, and the plan it runs by.
//
// A pure function of what all ranks agree on: the constants, the overrides, the request. Answers
// are kept, so asking again allocates nothing. Thread-safety: one thread at a time.
//
// agreement.h - what all ranks of a job go by: rank 0's constants and the order of the nodes.
//
// On one node the constants are those measured there (constants.h). Between nodes they are those of
// the cluster file that SLUICE_TOPOLOGY names at rank 0, else they are measured at every start:
// tenths of a second, for which host will meet which network is not known before.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "bootstrap/environment.h"
#include "engine/plan.h"
#include "engine/select/rank_order.h"
#include "sluice/algorithms.h"
#include "sluice/analysis/cost.h"
#include "sluice/communicator.h"
#include "sluice/status.h"
#include "transport/group.h"

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

struct Choice {
  const Algorithm* algorithm = nullptr;
  Shape shape;  // as schedules count the ranks (order.h)
  std::shared_ptr<const Plan> plan;
};

class Choices {
 public:
  Choices(RankOrder order, Rank rank, CostConstants constants,
          std::vector<AlgorithmOverride> overrides)
      : order_{std::move(order)},
        rank_{rank},
        constants_{std::move(constants)},
        overrides_{std::move(overrides)} {}

  const RankOrder& order() const { return order_; }
  const CostConstants& constants() const { return constants_; }
  const std::vector<AlgorithmOverride>& overrides() const { return overrides_; }

  // "ring to 4 KiB, direct beyond", overrides apart.
  std::string describe(Collective collective);

  // `asked`: by that algorithm; empty: by an override, else the cheapest. Proves what it has not
  // proven yet. The choice lives as long as this object.
  Result<const Choice*> choose(Collective collective, std::int64_t bytes, Rank root,
                               std::string_view asked);

 private:
  struct Entry {
    std::int64_t from_bytes;
    const Choice* choice;  // null until it is needed
    const Algorithm* algorithm;
    Shape shape;
  };
  struct Table {
    Collective collective;
    Rank root;
    std::vector<Entry> entries;  // by rising size
  };

  Table& table_of(Collective collective, Rank root);
  Result<const Choice*> chosen(const Algorithm& algorithm, const Shape& shape);

  RankOrder order_;
  Rank rank_;
  CostConstants constants_;
  std::vector<AlgorithmOverride> overrides_;
  std::vector<std::unique_ptr<Choice>> choices_;
  std::vector<Table> tables_;
};

// Every rank must call it. Throws what the collectives throw, and Error at a wrong file.
Choices agreed_choices(Communicator& communicator, const transport::Group& group,
                       const bootstrap::Environment& environment);

}  // namespace sluice::engine
