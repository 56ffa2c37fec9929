// tcp.h - a network of plain TCP connections.
//
// Every two ranks on different nodes share two sockets: one for messages and one for status
// updates, so that neither delays the other. A message is sent directly from the caller's memory,
// and counts as sent when the kernel has all of it. Data that is only copied is received directly
// into its destination; other data is received into a buffer, in pieces that stay in the core's
// cache. A rank that leaves says goodbye, and the messages that it sent before still arrive.
//
// A rank connects to the listeners of lower ranks and accepts connections from higher ranks. The
// hello has the network and both ranks. A connection without a proof of the job's token is closed.
#pragma once

#include <sys/socket.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/file.h"
#include "transport/handshake.h"
#include "transport/network.h"
#include "transport/tcp/tcp_liveness.h"
#include "transport/token_proof.h"

namespace sluice::transport {

struct TcpAddress {
  std::string host;  // numeric
  std::uint16_t port = 0;
};

struct TcpOptions {
  Rank rank = 0;
  std::vector<TcpAddress> addresses;  // by rank; port 0 for a rank on this node
  std::string own_address;            // the listener's; empty: any
  base::Fd listener;
  std::string token;
  int wake_descriptor = -1;  // peers on this node wake this rank with it; must outlive the network
  Clock::time_point deadline;
  std::chrono::milliseconds longest_silence = kLongestSilence;  // of a peer's host
  bool spins = true;  // a rank that waits looks at its sockets before it sleeps, where that pays
};

// Returns when all ranks are connected. The error names the missing ranks.
Result<std::unique_ptr<Network>> make_tcp_network(TcpOptions options);

// The rest of this file is the handshake (tcp_handshake.cc), for tcp.cc and its tests.

enum class TcpStream : std::uint32_t { Messages, Status };

// The messages of the handshake, as token_proof.h describes it. They have no padding.
struct TcpHello {
  static constexpr std::uint64_t kMagic = 0x736c7569'63650102;  // "sluice", tcp, version 2
  std::uint64_t magic = kMagic;
  std::uint64_t network = 0;
  Rank from = 0;
  Rank to = 0;
  std::int32_t ranks = 0;
  TcpStream stream = TcpStream::Messages;
  Nonce nonce{};
};
struct TcpChallenge {
  std::uint64_t magic = TcpHello::kMagic;
  Nonce nonce{};
};

static_assert(sizeof(TcpHello) == 64 && sizeof(TcpChallenge) == 40);

inline Transcript transcript_of(const TcpHello& hello, const Nonce& challenge) {
  return {"tcp", std::as_bytes(std::span{&hello, 1}), challenge};
}

// A value that arrives on a socket, possibly in pieces.
template <class Value>
class Arriving {
 public:
  enum class State : std::uint8_t { Incomplete, Complete, Closed };
  State read(int socket) {
    if (received_ == sizeof value_) return State::Complete;
    auto* const bytes = reinterpret_cast<char*>(&value_);  // NOLINT: as bytes
    const ssize_t got = recv(socket, bytes + received_, sizeof value_ - received_, MSG_DONTWAIT);
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR)) return State::Closed;
    if (got > 0) received_ += static_cast<std::size_t>(got);
    return received_ == sizeof value_ ? State::Complete : State::Incomplete;
  }
  const Value& value() const { return value_; }

 private:
  Value value_{};
  std::size_t received_ = 0;
};

// An accepted connection.
struct TcpClient {
  base::Fd socket;
  Arriving<TcpHello> hello;
  std::optional<Nonce> challenge;  // sent to it
  Arriving<TokenProof> proof;

  int fd() const { return socket.number(); }
};

// The listener of a process; it outlives all networks of the rank.
struct TcpListener {
  TcpListener(base::Fd socket_in, std::string token_in, std::size_t ranks)
      : socket{std::move(socket_in)},
        token{std::move(token_in)},
        pending{2 * ranks + 64, std::chrono::seconds{5}} {}

  base::Fd socket;
  std::string token;
  PendingConnections<TcpClient> pending;
  std::vector<TcpClient> admitted;  // they know the token; this rank may join their network later
};

struct TcpJoin {
  std::uint64_t network = 0;
  Rank rank = 0;
  std::vector<TcpAddress> addresses;  // by rank; port 0 for a rank on this node
  SplitWait wait;
  std::chrono::milliseconds longest_silence = kLongestSilence;

  int ranks() const { return static_cast<int>(addresses.size()); }
  bool is_remote(Rank peer) const { return addresses[static_cast<std::size_t>(peer)].port != 0; }
};

struct TcpSockets {
  base::Fd messages;
  base::Fd status;
};

// Returns the sockets to each rank; they are closed for ranks on this node. The error names the
// missing ranks.
Result<std::vector<TcpSockets>> connect_tcp(const TcpJoin& join, TcpListener& listener,
                                            const std::string& own_address);

}  // namespace sluice::transport
