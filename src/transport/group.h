// group.h - the ranks of a communicator on one node: their shared control block, and whose memory
// is whose. Ranks are the group's own numbers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/control.h"
#include "transport/memory.h"

namespace sluice {

class Group {
 public:
  // All ranks of the memory. `control` has ControlBlock::bytes(ranks), zeroed, the same for all.
  Group(std::shared_ptr<Memory> memory, std::byte* control);
  // Some ranks of another group, in the order of their new numbers, with a control block of their
  // own. Bells stay those of the whole: a rank that sleeps hears of all its groups.
  Group(const Group& whole, const std::vector<Rank>& ranks, std::byte* control);

  Rank rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  Memory& memory() const { return *memory_; }

  RankBoard& board(Rank rank) const { return control_.board(rank); }
  RankBoard& own_board() const { return control_.board(rank_); }
  Bell& bell(Rank rank) const {
    return whole_.board(members_[static_cast<std::size_t>(rank)]).bell;
  }
  Channel& channel_to(Rank peer) const { return control_.channel(rank_, peer); }
  Channel& channel_from(Rank peer) const { return control_.channel(peer, rank_); }

  Result<std::byte*> address(Rank peer, Location location) const {
    return memory_->address(members_[static_cast<std::size_t>(peer)], location);
  }
  std::string death_of(Rank peer) const {
    return memory_->death_of(members_[static_cast<std::size_t>(peer)]);
  }
  std::string standstill_of(Rank peer) const {
    return memory_->standstill_of(members_[static_cast<std::size_t>(peer)]);
  }

 private:
  std::shared_ptr<Memory> memory_;
  std::vector<Rank> members_;  // their numbers in the memory
  Rank rank_ = 0;
  ControlBlock control_;
  ControlBlock whole_;
};

}  // namespace sluice
