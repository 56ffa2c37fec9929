// expressions.h - the sums that travel through a schedule, each held once.
//
// A leaf is a rank's contribution. A sum is of two expressions; with `commutative` the two are the
// same sum either way round, as IEEE addition has it. Equal expressions have equal ids, so ranks
// hold the same bits exactly when they hold the same id.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "sluice/schedule.h"

namespace sluice::schedule {

using ExpressionId = std::int32_t;
inline constexpr ExpressionId kNothing = -1;  // what an untouched place holds

class Expressions {
 public:
  Expressions(int ranks, bool commutative);

  // Forgets the sums; leaves stay. Call it for every chunk: memory is ranks^2 bits, not ranks^3.
  void clear();

  ExpressionId leaf(Rank rank) const { return rank; }
  ExpressionId sum(ExpressionId a, ExpressionId b);

  // A rank whose contribution is in both; a sum of the two would count it twice.
  std::optional<Rank> common_rank(ExpressionId a, ExpressionId b) const;
  std::optional<Rank> missing_rank(ExpressionId expression) const;

 private:
  using Word = std::uint64_t;
  const Word* ranks_in(ExpressionId expression) const {
    return words_.data() + static_cast<std::size_t>(expression) * words_each_;
  }

  int ranks_;
  bool commutative_;
  std::size_t words_each_;
  std::vector<Word> words_;  // for each expression, a bit for each rank in it
  std::unordered_map<std::uint64_t, ExpressionId> sums_;
};

}  // namespace sluice::schedule
