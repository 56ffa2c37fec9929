// rendezvous_server.h - rank 0's part of a rendezvous: it answers whoever calls until all ranks are
// there.
//
// A caller is a stranger until its Hello is believed, and a guest from then on. Strangers cost a
// descriptor each, for some seconds; what they do or leave undone holds nothing up. A guest that
// leaves ends the rendezvous for all.
#pragma once

#include <string>
#include <vector>

#include "bootstrap/rendezvous/rendezvous.h"
#include "bootstrap/rendezvous/rendezvous_message.h"
#include "bootstrap/rendezvous/roster.h"
#include "transport/tcp/socket_address.h"

namespace sluice::bootstrap {

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
