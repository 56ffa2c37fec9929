// rendezvous_server.h - rank 0's part of a rendezvous: it answers whoever calls until all ranks are
// there.
//
// A caller is a stranger until its Hello is believed, and a guest from then on. Strangers cost a
// descriptor each, for some seconds; what they do or leave undone holds nothing up. A guest that
// leaves ends the rendezvous for all.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/rendezvous.h"
#include "bootstrap/rendezvous/rendezvous_message.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::bootstrap {

// Which ranks have joined, and text that says which have not.
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

class RendezvousServer {
 public:
  // REQUIRES: the meeting outlives it; `listener` listens at `address`.
  RendezvousServer(const RendezvousOptions& meeting, base::Fd listener,
                   const transport::SocketAddress& address);

  // Blocks until all have come and have been told of each other; `self` is rank 0.
  Result<std::vector<RankInfo>> run(const RankInfo& self);

 private:
  struct Stranger {
    MessageStream stream;
    transport::Clock::time_point until;
    bool ready = true;  // there may be something to read
  };
  struct Guest {
    Rank rank = 0;
    MessageStream stream;
    bool ready = false;
  };

  Status gather();
  Status hand_out();
  void wait();
  Status accept_callers();
  void hear_strangers();
  void admit(Stranger& stranger, const RendezvousMessage& message);
  std::string reason_to_refuse(const RendezvousMessage& message,
                               const std::optional<Hello>& hello) const;
  Status hear_guests();
  void give_up(const Status& status);
  void tell_progress();
  Status left(Rank rank) const;
  Status too_late() const;
  std::string who() const;

  const RendezvousOptions& meeting_;
  base::Fd listener_;
  transport::SocketAddress address_;
  Roster attendance_;
  std::vector<Stranger> strangers_;
  std::vector<Guest> guests_;
  transport::Clock::time_point deadline_;  // the earliest of all who wait
  std::string last_refused_;
  std::string last_told_;
  transport::Clock::time_point told_at_;
};

}  // namespace sluice::bootstrap
