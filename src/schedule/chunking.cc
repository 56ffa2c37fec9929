#include <numeric>
#include <utility>

#include "sluice/schedule.h"

namespace sluice {
namespace {

__extension__ using Wide = __int128;

}  // namespace

Chunking::Chunking(std::vector<std::int64_t> weights)
    : chunks_{static_cast<int>(weights.size())}, ends_{std::move(weights)} {
  bool uniform = true;
  for (const std::int64_t weight : ends_) uniform = uniform && weight == ends_.front();
  if (uniform) {
    ends_.clear();
  } else {
    std::partial_sum(ends_.begin(), ends_.end(), ends_.begin());
  }
}

std::int64_t Chunking::weight(int chunk) const {
  if (uniform()) return 1;
  const auto c = static_cast<std::size_t>(chunk);
  return c == 0 ? ends_[0] : ends_[c] - ends_[c - 1];
}

std::int64_t Chunking::weight(const Range& range) const {
  if (uniform()) return range.count;
  const auto sum_to = [&](int end) {
    return end == 0 ? 0 : ends_[static_cast<std::size_t>(end) - 1];
  };
  const int end = range.first + range.count;
  if (end <= chunks_) return sum_to(end) - sum_to(range.first);
  return total_weight() - sum_to(range.first) + sum_to(end - chunks_);
}

std::int64_t Chunking::total_weight() const { return uniform() ? chunks_ : ends_.back(); }

std::int64_t Chunking::begin(int chunk, std::int64_t count) const {
  const std::int64_t before =
      uniform() ? chunk : (chunk == 0 ? 0 : ends_[static_cast<std::size_t>(chunk) - 1]);
  return static_cast<std::int64_t>(Wide{count} * before / total_weight());
}

Rank owner_of_chunk(const Chunking& layout, int ranks, int chunk) {
  return chunk / (layout.chunks() / ranks);
}

bool is_reduction(Collective collective) {
  return collective != Collective::AllGather && collective != Collective::Broadcast;
}

bool has_root(Collective collective) {
  return collective == Collective::Broadcast || collective == Collective::Reduce;
}

bool has_owners(Collective collective) {
  return collective == Collective::ReduceScatter || collective == Collective::AllGather;
}

bool brings(const Shape& shape, const Chunking& layout, Rank rank, int chunk) {
  switch (shape.collective) {
    case Collective::AllGather:
      return rank == owner_of_chunk(layout, shape.ranks, chunk);
    case Collective::Broadcast:
      return rank == shape.root;
    default:
      return true;
  }
}

bool is_promised(const Shape& shape, const Chunking& layout, Rank rank, int chunk) {
  switch (shape.collective) {
    case Collective::ReduceScatter:
      return rank == owner_of_chunk(layout, shape.ranks, chunk);
    case Collective::Reduce:
      return rank == shape.root;
    default:
      return true;
  }
}

}  // namespace sluice
