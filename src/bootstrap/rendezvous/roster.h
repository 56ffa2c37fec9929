// roster.h - which ranks have come, and how to say which have not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/rendezvous.h"

namespace sluice::bootstrap {

class Roster {
 public:
  explicit Roster(int ranks) : present_(static_cast<std::size_t>(ranks)) {}

  // `local_ranks` is how many its machine has, 0 where nobody knows. REQUIRES: it was not there.
  void add(Rank rank, RankInfo participant, int local_ranks);
  bool has(Rank rank) const { return present_[static_cast<std::size_t>(rank)].has_value(); }
  bool complete() const { return joined_ == ranks(); }
  std::vector<RankInfo> participants() const;  // REQUIRES: complete()

  // "5 of 8 ranks joined, waiting for 3 on host b", or "... waiting for ranks 5, 6, 7" where not
  // every missing rank must be on a machine that others have come from.
  std::string text() const;
  // "rank 3 on host b". REQUIRES: has(rank)
  std::string who(Rank rank) const;

 private:
  struct Entry {
    RankInfo participant;
    int local_ranks = 0;
  };

  int ranks() const { return static_cast<int>(present_.size()); }
  std::string missing_by_host() const;

  std::vector<std::optional<Entry>> present_;  // by rank
  int joined_ = 0;
};

// "rank 3", "ranks 5, 6, 7", "ranks 1, 5-12". REQUIRES: not empty, rising.
std::string show_ranks(const std::vector<Rank>& ranks);

}  // namespace sluice::bootstrap
