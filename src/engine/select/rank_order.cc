#include "engine/select/rank_order.h"

#include <algorithm>
#include <numeric>
#include <tuple>

#include "transport/group.h"

namespace sluice::engine {
namespace {

std::vector<int> nodes_of(const transport::Group& group) {
  std::vector<int> nodes;
  for (Rank rank = 0; rank < group.size(); ++rank) nodes.push_back(group.location(rank).node);
  return nodes;
}

}  // namespace

RankOrder::RankOrder(const std::vector<int>& node_of, const std::vector<int>& switch_of) {
  const auto node = [&](Rank rank) { return node_of[static_cast<std::size_t>(rank)]; };
  const auto first_rank = [&](int of) {
    return std::find(node_of.begin(), node_of.end(), of) - node_of.begin();
  };
  const auto switch_at = [&](int of) {
    return static_cast<std::size_t>(of) < switch_of.size() ? switch_of[static_cast<std::size_t>(of)]
                                                           : 0;
  };
  ranks_.resize(node_of.size());
  std::iota(ranks_.begin(), ranks_.end(), 0);
  std::stable_sort(ranks_.begin(), ranks_.end(), [&](Rank a, Rank b) {
    return std::tuple{switch_at(node(a)), first_rank(node(a))} <
           std::tuple{switch_at(node(b)), first_rank(node(b))};
  });
  for (const Rank rank : ranks_) nodes_.push_back(node(rank));
}

RankOrder::RankOrder(const transport::Group& group, const std::vector<int>& switch_of)
    : RankOrder{nodes_of(group), switch_of} {}

RankOrder RankOrder::part(const std::vector<Rank>& members) const {
  RankOrder part;
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    const auto member = std::find(members.begin(), members.end(), ranks_[place]);
    if (member == members.end()) continue;
    part.ranks_.push_back(static_cast<Rank>(member - members.begin()));
    part.nodes_.push_back(nodes_[place]);
  }
  return part;
}

Rank RankOrder::place_of(Rank rank) const {
  return static_cast<Rank>(std::find(ranks_.begin(), ranks_.end(), rank) - ranks_.begin());
}

bool RankOrder::holds_for(const Algorithm& algorithm, Collective collective) const {
  return !algorithm.ordered && !has_owners(collective) &&
         !std::is_sorted(ranks_.begin(), ranks_.end());
}

Topology RankOrder::topology(Collective collective) const {
  if (has_owners(collective) && !std::is_sorted(ranks_.begin(), ranks_.end()))
    return Topology::flat(size());
  Topology topology;
  for (std::size_t place = 0; place < nodes_.size(); ++place) {
    if (place == 0 || nodes_[place] != nodes_[place - 1]) topology.nodes.push_back(0);
    ++topology.nodes.back();
  }
  return topology;
}

}  // namespace sluice::engine
