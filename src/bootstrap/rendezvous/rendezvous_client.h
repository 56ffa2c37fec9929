// rendezvous_client.h - what every rank but 0 does at a rendezvous: it calls rank 0 until that
// answers.
#pragma once

#include <optional>
#include <string>

#include "bootstrap/rendezvous/rendezvous.h"
#include "bootstrap/rendezvous/rendezvous_message.h"
#include "transport/tcp/socket_address.h"

namespace sluice::bootstrap {

// Where a rank can be called, and what it says of itself.
struct OwnListener {
  RankInfo self;
  base::Fd listener;
  std::string interface;
};

// Listens at `towards_master`, or at the interface that the meeting names.
Result<OwnListener> open_own(const RendezvousOptions& meeting,
                             const transport::SocketAddress& towards_master);

class RendezvousClient {
 public:
  explicit RendezvousClient(const RendezvousOptions& meeting)
      : meeting_{meeting}, began_{transport::Clock::now()} {}

  // Blocks until rank 0 has told of everybody.
  Result<RendezvousResult> run();

 private:
  // None: worth another call, and why_not_ says why.
  std::optional<Result<RendezvousResult>> attempt(const transport::SocketAddress& master);
  std::optional<Result<RendezvousResult>> introduce(base::Fd socket,
                                                    const transport::SocketAddress& master);
  std::optional<Result<RendezvousResult>> answer(const RendezvousMessage& message, OwnListener& own,
                                                 const transport::SocketAddress& master);
  bool wait(int socket, short events, transport::Clock::time_point until);
  void nap();
  void tell_once();
  Status failure(Code code, const std::string& what) const;
  Status too_late() const;

  const RendezvousOptions& meeting_;
  transport::Clock::time_point began_;
  std::chrono::milliseconds pause_{0};  // before the next call
  bool told_ = false;
  bool welcome_ = false;
  std::string why_not_ = "no answer";
};

}  // namespace sluice::bootstrap
