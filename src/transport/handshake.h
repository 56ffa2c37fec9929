// handshake.h - the common part of the handshakes with which ranks join a job.
//
// Ranks join over Unix sockets (memory/node_join.h), over TCP (tcp/tcp.h) and at the rendezvous
// server (bootstrap/rendezvous). In each case a process accepts connections, reads a hello from
// each of them, and lets both sides prove that they know the job's token (token_proof.h). Until
// then a connection is pending: it costs a descriptor, but cannot delay the ranks.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/format.h"
#include "sluice/schedule.h"
#include "sluice/status.h"
#include "transport/wait.h"

namespace sluice::transport {

inline constexpr std::size_t kLongestToken = 255;

// Fails when a process cannot join as this rank, when its token is too long, or when libcrypto
// cannot prove it.
Status check_join(Rank rank, int ranks, int most_ranks, std::string_view token);

// The part of a hello that every handshake checks.
struct JoinClaim {
  std::int64_t rank = 0;
  std::int64_t ranks = 0;
};

// "" when the claim fits the job, else the reason for a refusal.
std::string reason_to_refuse(const JoinClaim& claim, int ranks);
inline constexpr std::string_view kWrongToken = "its token is not that of this job";

// "rank 3", "ranks 5, 6, 7", "ranks 1, 5-12". REQUIRES: `ranks` is sorted and not empty.
std::string show_ranks(const std::vector<Rank>& ranks);

// Connections whose hello has not been checked. Their number and time are bounded: a connection
// that exceeds its time is closed, and so is the oldest when there are too many. A rank whose
// connection is closed in this way connects again. A Connection has a fd().
template <class Connection>
class PendingConnections {
 public:
  PendingConnections(std::size_t most, Clock::duration timeout) : most_{most}, timeout_{timeout} {}

  // Accepts all connections that wait at the listener. make() turns a socket into a Connection, or
  // returns nullopt to close it. An error message begins with `name`.
  template <class Make>
  Status accept_all(const base::Fd& listener, std::string_view name, Make&& make) {
    while (true) {
      base::Fd socket{accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
      if (!socket.open()) {
        // Other errors mean that no connection waits, or that it was closed again.
        if (errno != EMFILE && errno != ENFILE) return {};
        return {Code::NoMemory, base::format("{}: too many open files: raise ulimit -n", name)};
      }
      std::optional<Connection> connection = make(std::move(socket));
      if (!connection) continue;
      if (entries_.size() >= most_) entries_.erase(entries_.begin());
      entries_.push_back({std::move(*connection), Clock::now() + timeout_});
    }
  }

  // Adds all connections to those that are polled next.
  void add_to(std::vector<pollfd>& polled) {
    for (Entry& entry : entries_) {
      entry.at = polled.size();
      entry.ready = false;
      polled.push_back({entry.connection.fd(), POLLIN, 0});
    }
  }
  // Notes which of them have events. REQUIRES: no connection was added or removed since add_to().
  void note_events(const std::vector<pollfd>& polled) {
    for (Entry& entry : entries_) entry.ready = polled[entry.at].revents != 0;
  }

  // Calls read() for each connection that is new or has events, and removes those for which it
  // returns true: they were admitted, refused or closed.
  template <class Read>
  void read_all(Read&& read) {
    const auto now = Clock::now();
    std::erase_if(entries_, [&](Entry& entry) {
      return (entry.ready && read(entry.connection)) || now >= entry.until;
    });
  }

  void clear() { entries_.clear(); }

 private:
  struct Entry {
    Connection connection;
    Clock::time_point until;
    std::size_t at = 0;  // among the polled
    bool ready = true;
  };

  std::size_t most_;
  Clock::duration timeout_;
  std::vector<Entry> entries_;
};

}  // namespace sluice::transport
