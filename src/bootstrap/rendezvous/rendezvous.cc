#include "bootstrap/rendezvous/rendezvous.h"

#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/format.h"
#include "bootstrap/rendezvous/interfaces.h"
#include "bootstrap/rendezvous/rendezvous_client.h"
#include "bootstrap/rendezvous/rendezvous_server.h"

namespace sluice::bootstrap {
namespace {

constexpr auto kRetry = std::chrono::milliseconds{100};

Status check(const RendezvousOptions& meeting) {
  constexpr int kMostRanks = 65536;
  if (meeting.ranks < 1 || meeting.ranks > kMostRanks || meeting.rank < 0 ||
      meeting.rank >= meeting.ranks) {
    return {Code::InvalidArgument,
            base::format("rank {} of {} cannot join: ranks count from 0, and there are 1 to {}",
                         meeting.rank, meeting.ranks, kMostRanks)};
  }
  if (meeting.token.size() > kLongestText) {
    return {Code::InvalidArgument,
            base::format("the job's token has {} characters, {} at most are allowed",
                         meeting.token.size(), kLongestText)};
  }
  if (meeting.master.empty() || meeting.port == 0) {
    return {Code::InvalidArgument,
            "where rank 0 can be called is not known: set MASTER_ADDR to its machine's name or "
            "address, and SLUICE_PORT to a free port there"};
  }
  // Better now than when everybody waits.
  return meeting.interface.empty() ? Status{} : find_interface(meeting.interface, 0).status();
}

bool nap_until(transport::Clock::time_point deadline) {
  if (transport::Clock::now() >= deadline) return false;
  poll(nullptr, 0, static_cast<int>(kRetry.count()));
  return true;
}

struct Desk {
  base::Fd listener;
  transport::SocketAddress address;
};

Status cannot_listen(const RendezvousOptions& meeting, const transport::SocketAddress& address,
                     int error) {
  if (error == EADDRNOTAVAIL) {
    return {Code::InvalidInput,
            base::format("rank 0 must run on the machine that the others call, but {} ({}) is not "
                         "this one: host {} has {}",
                         meeting.master, address.host(), host_name(), list_interfaces())};
  }
  if (error == EADDRINUSE) {
    return {
        Code::InvalidInput,
        base::format("port {} of {} is in use by another program: set SLUICE_PORT to a free one",
                     meeting.port, address.host())};
  }
  return {Code::InvalidInput,
          base::format("rank 0 cannot listen at {}: {}", address.text(), std::strerror(error))};
}

// The first of the master's addresses that is this machine's.
Result<Desk> listen_as_master(const RendezvousOptions& meeting) {
  // A rank of this machine that calls already may have met itself and hold the port for a moment.
  const auto taken_until =
      std::min(meeting.deadline, transport::Clock::now() + std::chrono::seconds{1});
  while (true) {
    const auto addresses = transport::resolve(meeting.master, meeting.port);
    if (!addresses.ok()) {
      if (nap_until(meeting.deadline)) continue;
      return addresses.status();
    }
    Status failure;
    bool taken = false;
    for (const transport::SocketAddress& address : addresses.value()) {
      if (address.unspecified()) {
        failure = {Code::InvalidInput, base::format("{} is no address that others can call: give "
                                                    "one of this machine, which has {}",
                                                    meeting.master, list_interfaces())};
        continue;
      }
      base::Fd listener = transport::listen_at(address);
      if (listener.open()) return Desk{std::move(listener), address};
      const int error = errno;
      // That the port is taken says more than that another address is elsewhere.
      if (!taken || error == EADDRINUSE) failure = cannot_listen(meeting, address, error);
      taken |= error == EADDRINUSE;
    }
    if (!taken || !nap_until(taken_until)) return failure;
  }
}

Result<RendezvousResult> receive(const RendezvousOptions& meeting) {
  auto desk = listen_as_master(meeting);
  if (!desk.ok()) return desk.status();
  auto own = open_own(meeting, desk.value().address);
  if (!own.ok()) return own.status();
  RendezvousServer reception{meeting, std::move(desk.value().listener), desk.value().address};
  auto participants = reception.run(own.value().self);
  if (!participants.ok()) return participants.status();
  return RendezvousResult{std::move(participants).value(), std::move(own.value().listener),
                          own.value().interface};
}

}  // namespace

Result<RendezvousResult> meet(const RendezvousOptions& meeting) {
  Status status = check(meeting);
  if (!status.ok()) return status;
  return meeting.rank == 0 ? receive(meeting) : RendezvousClient{meeting}.run();
}

}  // namespace sluice::bootstrap
