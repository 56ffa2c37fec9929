// rendezvous_server.h - rank 0's part of a rendezvous: it answers clients until all ranks have
// joined.
//
// A connection is pending until it has proven the token (transport/handshake.h); then it is a
// client. Pending connections cannot delay the rendezvous, but a client that leaves ends it for all
// ranks.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bootstrap/rendezvous/rendezvous.h"
#include "bootstrap/rendezvous/rendezvous_message.h"
#include "transport/handshake.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::bootstrap {

// The ranks that have joined, and text that names the missing ones.
class Roster {
 public:
  explicit Roster(int ranks) : present_(static_cast<std::size_t>(ranks)) {}

  // `local_ranks` is the number of ranks on its machine; 0: unknown. REQUIRES: !has(rank)
  void add(Rank rank, RankInfo info, int local_ranks);
  bool has(Rank rank) const { return present_[static_cast<std::size_t>(rank)].has_value(); }
  bool complete() const { return joined_ == ranks(); }
  std::vector<RankInfo> infos() const;  // REQUIRES: complete()

  // "5 of 8 ranks joined, waiting for 3 on host b", or "... waiting for ranks 5, 6, 7" when a
  // missing rank may be on a machine that is still unknown.
  std::string text() const;
  // "rank 3 on host b". REQUIRES: has(rank)
  std::string name_of(Rank rank) const;

 private:
  struct Entry {
    RankInfo info;
    int local_ranks = 0;
  };

  int ranks() const { return static_cast<int>(present_.size()); }
  std::string missing_by_host() const;

  std::vector<std::optional<Entry>> present_;  // by rank
  int joined_ = 0;
};

class RendezvousServer {
 public:
  // REQUIRES: the options outlive it; `listener` listens at `address`.
  RendezvousServer(const RendezvousOptions& options, base::Fd listener,
                   const transport::SocketAddress& address);

  // Blocks until all ranks have joined and have received the table; `self` is rank 0.
  Result<std::vector<RankInfo>> run(const RankInfo& self);

 private:
  struct Client {
    Rank rank = 0;
    MessageStream stream;
    bool ready = false;  // its socket has an event
  };
  struct Applicant {  // a pending connection
    MessageStream stream;
    std::string hello;  // the body of its hello; empty until that arrives
    transport::Nonce challenge{};
    int fd() const { return stream.fd(); }
  };

  Status wait_for_all();
  Status send_table();
  void poll_sockets();
  bool is_settled(Applicant& applicant);
  bool challenge(Applicant& applicant, const RendezvousMessage& message);
  void admit(Applicant& applicant, const Hello& hello);
  void refuse(Applicant& applicant, const std::string& why);
  std::string refusal_of(const Applicant& applicant, const RendezvousMessage& message,
                         const Hello& hello) const;
  Status check_clients();
  void send_failure(const Status& status);
  void report_progress();
  // The roster's text, and the last refusal.
  std::string progress() const;
  Status lost(Rank rank) const;
  Status too_late() const;
  std::string name() const;

  const RendezvousOptions& options_;
  base::Fd listener_;
  transport::SocketAddress address_;
  Roster roster_;
  transport::PendingConnections<Applicant> pending_;
  std::vector<Client> clients_;
  transport::Clock::time_point deadline_;  // the earliest deadline of all ranks that have joined
  std::string last_refused_;
  std::string last_report_;
  transport::Clock::time_point reported_at_;
};

}  // namespace sluice::bootstrap
