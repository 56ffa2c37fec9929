// choices.h - the algorithm and plan that a rank runs for a collective of some size.
//
// A choice is a pure function of values that are equal on all ranks: the constants, the overrides,
// the order of the ranks and the request. Choices are kept, so a repeated request allocates
// nothing. Thread-safety: one thread at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bootstrap/environment.h"
#include "engine/plan.h"
#include "sluice/algorithms.h"
#include "sluice/analysis/cost.h"
#include "sluice/status.h"
#include "transport/group.h"

namespace sluice::engine {

// An algorithm that the user has chosen: "ring" for every size, or a list in which each algorithm
// may be limited to a range of sizes: "exchange@-4K,ring@4K-1M,direct@1M-".
struct AlgorithmOverride {
  const Algorithm* algorithm = nullptr;
  std::int64_t least = 0;                                       // bytes; the first size
  std::int64_t end = std::numeric_limits<std::int64_t>::max();  // not included
};

// As find_algorithm(), but a file that cannot be read is no error yet.
Result<const Algorithm*> find_named(std::string_view name);

Result<std::vector<AlgorithmOverride>> parse_overrides(std::string_view text);

// Those that apply to a part of a communicator: not the files for another number of ranks.
std::vector<AlgorithmOverride> overrides_of_part(std::vector<AlgorithmOverride> overrides,
                                                 int ranks);

// The overrides in SLUICE_ALGORITHM.
Result<std::vector<AlgorithmOverride>> overrides_from(const bootstrap::Environment& environment);

// The algorithm of the first override that applies to the collective and its bytes; null: none
// does. A file that cannot be read applies to every collective, so that it is noticed.
const Algorithm* find_override(const std::vector<AlgorithmOverride>& overrides,
                               Collective collective, std::int64_t bytes);

// The rank at each position of a schedule.
//
// Programs are written for ranks that are numbered node by node: a ring of them crosses the link of
// each node once in each direction. Users number ranks as they like. So the positions of a schedule
// are given to the ranks node by node, with the nodes of one switch next to each other. Where the
// numbers matter (an owner's part, sums in rank order), ranks keep their own numbers.
class RankOrder {
 public:
  // `node_of`: the node of every rank. `switch_of`: the switch of every node; 0 for nodes beyond
  // its end.
  RankOrder(const std::vector<int>& node_of, const std::vector<int>& switch_of);
  explicit RankOrder(const transport::Group& group, const std::vector<int>& switch_of = {});
  // The order of some of the ranks, by their new numbers.
  RankOrder part(const std::vector<Rank>& members) const;

  int size() const { return static_cast<int>(ranks_.size()); }
  // The rank at each position.
  const std::vector<Rank>& ranks() const { return ranks_; }
  Rank position_of(Rank rank) const;

  // Whether the schedules of this algorithm and collective use this order, because it differs from
  // the ranks' own numbers and their numbers do not matter.
  bool applies_to(const Algorithm& algorithm, Collective collective) const;
  // The nodes, as schedules of the collective see them. Where a node's ranks are not consecutive,
  // each rank is a node of its own.
  Topology topology(Collective collective) const;

 private:
  RankOrder() = default;

  std::vector<Rank> ranks_;
  std::vector<int> nodes_;  // the node at each position
};

struct Choice {
  const Algorithm* algorithm = nullptr;
  Shape shape;                                 // with positions of the RankOrder where it applies
  std::shared_ptr<const Plan> plan = nullptr;  // null for a file until its marks are known
  bool used = false;    // by a collective of this communicator: all its ranks know the verdict
  Status refusal = {};  // why this rank cannot use the file
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

  // "ring to 4 KiB, direct beyond", without the overrides.
  std::string describe(Collective collective);

  // `asked` names the algorithm; empty: an override, else the cheapest. The schedule may not be
  // proven yet. The choice lives as long as this object. It is an error if no rank can make such a
  // call. A file that this rank cannot use is none, because the file of another rank may differ:
  // the choice then has a refusal, which the ranks report to each other at the first use.
  // Without a number of elements, any number is assumed to fit.
  Result<Choice*> choose(Collective collective, std::int64_t bytes, Rank root,
                         std::string_view asked, std::int64_t elements = 0);

  // Makes the plan of a file's choice, from the marks of the verdict.
  void complete(Choice& choice, const std::string& packed_marks) const {
    choice.plan = plan_of(*choice.algorithm, choice.shape, rank_, packed_marks);
  }

 private:
  struct Entry {
    std::int64_t from_bytes;
    Choice* choice;  // null until it is needed
    const Algorithm* algorithm;
    Shape shape;
  };
  struct Table {
    Collective collective;
    Rank root;
    std::vector<Entry> entries;  // by rising size
  };

  Table& table_of(Collective collective, Rank root);
  Choice* choice_of(const Algorithm& algorithm, const Shape& shape);
  Choice* choice_of_file(const Algorithm& algorithm, Collective collective, Rank root);

  RankOrder order_;
  Rank rank_;
  CostConstants constants_;
  std::vector<AlgorithmOverride> overrides_;
  std::vector<std::unique_ptr<Choice>> choices_;
  std::vector<Table> tables_;
};

}  // namespace sluice::engine
