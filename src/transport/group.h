// group.h - the ranks of a communicator, and how to reach each of them.
//
// The ranks of one node share a control block; a Network leads to the ranks of other nodes. Status
// boards and death_of() work for all ranks. Ranks have the group's own numbers.
// Thread-safety: one thread at a time, except ring().
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "transport/control.h"
#include "transport/memory/memory.h"
#include "transport/network.h"

namespace sluice::transport {

struct RankLocation {
  int node = 0;
  Rank local = 0;       // the rank's number in the memory of its node
  Rank in_job = 0;      // the rank's number among all ranks of the job
  std::string host;     // for messages; may be empty
  std::string address;  // likewise
};

class Group {
 public:
  // A group of all ranks of the memory. They share `control`, which has ControlBlock::bytes(ranks)
  // bytes, all zero.
  Group(std::shared_ptr<Memory> memory, std::byte* control);
  // A group of ranks on several nodes. The ranks of this node share `control`.
  Group(Rank rank, const std::vector<RankLocation>& locations, std::shared_ptr<Memory> memory,
        std::byte* control, std::unique_ptr<Network> network);
  // A group of some ranks of another group, in the order of their new numbers. They have a control
  // block of their own and, if they are on several nodes, a network. They keep the doorbells of the
  // whole group, so that a sleeping rank notices all its groups.
  Group(const Group& whole, const std::vector<Rank>& ranks, std::byte* control,
        std::unique_ptr<Network> network);

  Rank rank() const { return rank_; }
  int size() const { return static_cast<int>(members_.size()); }
  Memory& memory() const { return *memory_; }
  Network* network() const { return network_.get(); }  // null: all ranks are on this node

  const RankLocation& location(Rank rank) const { return members_[index(rank)].location; }
  int node() const { return location(rank_).node; }
  bool is_local(Rank rank) const { return members_[index(rank)].control_index >= 0; }

  StatusBoard& board(Rank rank) const;
  StatusBoard& own_board() const { return board(rank_); }

  // REQUIRES, for all functions from here to ring(): the ranks are on this node.
  Slot& slot(Rank rank, std::uint64_t number) const {
    return control_.rank_control(control_index(rank)).slots[number % 2];
  }
  Channel& channel_to(Rank peer) const {
    return control_.channel(control_index(rank_), control_index(peer));
  }
  Channel& channel_from(Rank peer) const {
    return control_.channel(control_index(peer), control_index(rank_));
  }
  Result<std::byte*> address(Rank peer, MemoryLocation bytes) const {
    return memory_->address(location(peer).local, bytes);
  }
  Doorbell& own_doorbell() const { return doorbell(rank_); }
  void ring(Rank peer) const {
    if (sluice::transport::ring(doorbell(peer))) memory_->wake(location(peer).local);
  }

  // Sends this rank's status to the ranks of other nodes.
  void publish_status() const;
  // Copies the newest status of the ranks of other nodes to their boards.
  void receive_status() const;
  // The time of the last status update from a rank on another node.
  Clock::time_point last_heard(Rank peer) const { return members_[index(peer)].last_heard; }

  // "" while the rank can be reached, else a description of its end.
  std::string death_of(Rank peer) const;
  // Has this rank itself look at a rank of its node from now on (Memory::watch). kOwn: nothing.
  void watch(Rank peer) const;
  // "" unless the rank is known to be stopped or unreachable, else the reason.
  std::string stall_of(Rank peer) const;

 private:
  struct Member {
    RankLocation location;
    Rank control_index = -1;            // in this group's control block; -1: on another node
    std::unique_ptr<StatusBoard> copy;  // the board of a rank on another node
    Clock::time_point last_heard{};
  };

  static std::size_t index(Rank rank) { return static_cast<std::size_t>(rank); }
  Rank control_index(Rank rank) const { return members_[index(rank)].control_index; }
  Doorbell& doorbell(Rank rank) const { return whole_.rank_control(location(rank).local).doorbell; }
  void receive_status(Rank peer) const;
  void add_members(const std::vector<RankLocation>& locations);

  std::shared_ptr<Memory> memory_;
  Rank rank_ = 0;
  mutable std::vector<Member> members_;
  ControlBlock control_;
  ControlBlock whole_;
  std::unique_ptr<Network> network_;
};

}  // namespace sluice::transport
