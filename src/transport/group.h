// group.h - the ranks of a communicator: who shares memory with whom, and the way to the others.
//
// Ranks of this rank's node meet in a control block; the others are reached through a Network. What
// is asked of a rank (its board, whether it lives) is asked the same way of both.
// Ranks are the group's own numbers. Thread-safety: one thread at a time, except ring().
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "transport/control.h"
#include "transport/memory/memory.h"
#include "transport/network.h"

namespace sluice::transport {

// Where a rank is.
struct RankLocation {
  int node = 0;
  Rank local = 0;       // its number in its node's memory
  std::string host;     // for messages; may be empty
  std::string address;  // likewise
};

class Group {
 public:
  // All ranks of the memory. `control` has ControlBlock::bytes(ranks), zeroed, the same for all.
  Group(std::shared_ptr<Memory> memory, std::byte* control);
  // Ranks of several nodes, by their places; `control` is for those of this one.
  Group(Rank rank, const std::vector<RankLocation>& places, std::shared_ptr<Memory> memory,
        std::byte* control, std::unique_ptr<Network> network);
  // Some ranks of another group, in the order of their new numbers, with a control block of their
  // own and, if they are on several nodes, a network. Bells stay those of the whole: a rank that
  // sleeps hears of all its groups.
  Group(const Group& whole, const std::vector<Rank>& ranks, std::byte* control,
        std::unique_ptr<Network> network);

  Rank rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  Memory& memory() const { return *memory_; }
  Network* network() const { return network_.get(); }  // null: all ranks are on this node

  const RankLocation& location(Rank rank) const { return members_[index(rank)].place; }
  int node() const { return location(rank_).node; }
  bool is_local(Rank rank) const { return members_[index(rank)].seat >= 0; }

  StatusBoard& board(Rank rank) const;
  StatusBoard& own_board() const { return board(rank_); }

  // Of ranks of this node.
  Slot& slot(Rank rank, std::uint64_t number) const {
    return control_.rank_control(seat(rank)).slots[number % 2];
  }
  Channel& channel_to(Rank peer) const { return control_.channel(seat(rank_), seat(peer)); }
  Channel& channel_from(Rank peer) const { return control_.channel(seat(peer), seat(rank_)); }
  Result<std::byte*> address(Rank peer, MemoryLocation bytes) const {
    return memory_->address(location(peer).local, bytes);
  }
  Doorbell& own_doorbell() const { return bell(rank_); }
  void ring(Rank peer) const {
    if (sluice::transport::ring(bell(peer))) memory_->wake(location(peer).local);
  }

  // Tells the ranks of other nodes what this rank's board says, and copies what they tell.
  void publish_status() const;
  void receive_status() const;
  // When anything was last heard of a rank of another node.
  Clock::time_point last_heard(Rank peer) const { return members_[index(peer)].heard; }

  // "" while the rank can be reached, else how it ended.
  std::string death_of(Rank peer) const;
  // "" while nothing is known to hold it up, else what does.
  std::string stall_of(Rank peer) const;

 private:
  struct Member {
    RankLocation place;
    Rank seat = -1;                     // in this group's control block; -1: it is on another node
    std::unique_ptr<StatusBoard> copy;  // of the board of a rank on another node
    Clock::time_point heard{};
  };

  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }
  Rank seat(Rank rank) const { return members_[index(rank)].seat; }
  Doorbell& bell(Rank rank) const { return whole_.rank_control(location(rank).local).bell; }
  void receive_status(Rank peer) const;
  void take_places(const std::vector<RankLocation>& places);

  std::shared_ptr<Memory> memory_;
  Rank rank_ = 0;
  mutable std::vector<Member> members_;
  ControlBlock control_;
  ControlBlock whole_;
  std::unique_ptr<Network> network_;
};

}  // namespace sluice::transport
