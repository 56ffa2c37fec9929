#include "transport/group.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice {
namespace {

std::vector<Rank> all_ranks(int ranks) {
  std::vector<Rank> all(static_cast<std::size_t>(ranks));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

}  // namespace

Group::Group(std::shared_ptr<Memory> memory, std::byte* control)
    : memory_{std::move(memory)},
      members_{all_ranks(memory_->size())},
      rank_{memory_->rank()},
      control_{control, memory_->size()},
      whole_{control_} {}

Group::Group(const Group& whole, const std::vector<Rank>& ranks, std::byte* control)
    : memory_{whole.memory_},
      control_{control, static_cast<int>(ranks.size())},
      whole_{whole.whole_} {
  for (const Rank rank : ranks) members_.push_back(whole.members_[static_cast<std::size_t>(rank)]);
  rank_ = static_cast<Rank>(std::find(ranks.begin(), ranks.end(), whole.rank_) - ranks.begin());
}

}  // namespace sluice
