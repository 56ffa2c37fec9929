// choices.h - which algorithm a rank runs for which collective and size, and the plan it runs by.
//
// A pure function of what all ranks agree on: the constants, the overrides, the request. Answers
// are kept, so asking again allocates nothing. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan.h"
#include "engine/select/algorithm_override.h"
#include "engine/select/rank_order.h"
#include "sluice/cost.h"

namespace sluice::engine {

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

}  // namespace sluice::engine
