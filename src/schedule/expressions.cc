#include "schedule/expressions.h"

#include <bit>
#include <utility>

namespace sluice::schedule {
namespace {

constexpr std::size_t kWordBits = 64;

}  // namespace

Expressions::Expressions(int ranks, bool commutative)
    : ranks_{ranks},
      commutative_{commutative},
      words_each_{(static_cast<std::size_t>(ranks) + kWordBits - 1) / kWordBits} {
  const auto leaves = static_cast<std::size_t>(ranks);
  words_.resize(leaves * words_each_);
  for (std::size_t rank = 0; rank < leaves; ++rank) {
    words_[rank * words_each_ + rank / kWordBits] = Word{1} << (rank % kWordBits);
  }
}

void Expressions::clear() {
  words_.resize(static_cast<std::size_t>(ranks_) * words_each_);
  sums_.clear();
}

ExpressionId Expressions::sum(ExpressionId a, ExpressionId b) {
  if (commutative_ && a > b) std::swap(a, b);
  const std::uint64_t key =
      std::uint64_t{static_cast<std::uint32_t>(a)} << 32U | static_cast<std::uint32_t>(b);
  const auto next = static_cast<ExpressionId>(words_.size() / words_each_);
  const auto [at, fresh] = sums_.try_emplace(key, next);
  if (fresh) {
    words_.resize(words_.size() + words_each_);
    Word* const united = words_.data() + static_cast<std::size_t>(next) * words_each_;
    for (std::size_t w = 0; w < words_each_; ++w) united[w] = ranks_in(a)[w] | ranks_in(b)[w];
  }
  return at->second;
}

std::optional<Rank> Expressions::common_rank(ExpressionId a, ExpressionId b) const {
  for (std::size_t w = 0; w < words_each_; ++w) {
    if (const Word common = ranks_in(a)[w] & ranks_in(b)[w]; common != 0) {
      return static_cast<Rank>(w * kWordBits + static_cast<std::size_t>(std::countr_zero(common)));
    }
  }
  return std::nullopt;
}

std::optional<Rank> Expressions::missing_rank(ExpressionId expression) const {
  for (Rank rank = 0; rank < ranks_; ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    if ((ranks_in(expression)[r / kWordBits] >> (r % kWordBits) & 1) == 0) return rank;
  }
  return std::nullopt;
}

}  // namespace sluice::schedule
