// rank_order.h - the order in which schedules count the ranks of a communicator.
//
// Programs are written for ranks that sit node by node, and a ring of them crosses the link of each
// node once each way; users number ranks as they like. So a schedule's places are given to ranks
// node by node, and nodes behind one switch come together. Where the numbering itself matters (who
// owns which part; sums in rank order) every rank keeps its number.
#pragma once

#include <vector>

#include "sluice/algorithms.h"
#include "sluice/analysis/cost.h"

namespace sluice::transport {
class Group;
}

namespace sluice::engine {

class RankOrder {
 public:
  // By the node of every rank and the switch of every node; nodes that are not told are behind
  // switch 0.
  RankOrder(const std::vector<int>& node_of, const std::vector<int>& switch_of);
  explicit RankOrder(const transport::Group& group, const std::vector<int>& switch_of = {});
  // Of some of the ranks, by their new numbers.
  RankOrder part(const std::vector<Rank>& members) const;

  int size() const { return static_cast<int>(ranks_.size()); }
  // Who has each place.
  const std::vector<Rank>& ranks() const { return ranks_; }
  Rank place_of(Rank rank) const;

  // Whether such a schedule may count ranks in this order, rather than by their numbers.
  bool holds_for(const Algorithm& algorithm, Collective collective) const;
  // The nodes, for schedules of the collective: each rank a node where they are not consecutive.
  Topology topology(Collective collective) const;

 private:
  RankOrder() = default;

  std::vector<Rank> ranks_;
  std::vector<int> nodes_;  // of each place
};

}  // namespace sluice::engine
