// tcp_socket.h - TCP sockets: their addresses, how they are opened, and their options.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "sluice/analysis/cost.h"
#include "sluice/status.h"

namespace sluice::transport {

class SocketAddress {
 public:
  // Parses a numeric address: "10.0.0.1" or "fe80::1%eth0". nullopt for a name.
  static std::optional<SocketAddress> numeric(const std::string& host, std::uint16_t port);
  // REQUIRES: AF_INET or AF_INET6.
  static SocketAddress of(const sockaddr& address);
  static SocketAddress of_socket(int socket);  // this end
  static SocketAddress of_peer(int socket);    // the other end

  const sockaddr* address() const {
    return reinterpret_cast<const sockaddr*>(&storage_);  // NOLINT: as the system calls want it
  }
  socklen_t bytes() const;
  int family() const { return storage_.ss_family; }

  std::string host() const;  // numeric
  std::uint16_t port() const;
  SocketAddress with_port(std::uint16_t port) const;
  std::string text() const;  // "10.0.0.1:29501", "[::1]:29501"

  bool loopback() const;     // reachable from this machine only
  bool unspecified() const;  // 0.0.0.0 or ::
  bool link_local() const;   // an IPv6 address that is valid only with an interface

 private:
  sockaddr_storage storage_{};
};

// "10.0.0.1:29501", "[::1]:29501", "node-a:29501".
std::string show_address(const std::string& host, std::uint16_t port);

// All addresses of a name, in the resolver's order of preference. Blocks as long as the resolver
// does.
Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port);

// A non-blocking close-on-exec socket. Not open on failure; errno has the reason.
base::Fd new_stream_socket(int family);

// Listens at this address only; port 0 means any free port. Not open on failure; errno has the
// reason.
base::Fd listen_at(const SocketAddress& address);

void set_option(int socket, int level, int option, int value);
// Sets no delay for short messages, and a congestion control that does not pause.
void set_mesh_options(int socket);

// The receive buffer bounds the data that a connection takes in before it is read.
//
// A fast rank sends the message of its next step while its peer still waits for a message from a
// slow rank. The early message takes bandwidth from the awaited one, so the slow rank falls further
// behind, and TCP's window grows to megabytes. A buffer that keeps the link busy is enough. A rank
// that receives from only one peer, as in a ring, does better with TCP's own window: when its
// thread is scheduled late, more data has arrived.

// The value for SO_RCVBUF if the system allows at most `most`. 0: leave the size to the system.
std::size_t receive_buffer_for(const Link& link, std::size_t most);

// The largest value of SO_RCVBUF that this system allows.
std::size_t most_receive_buffer();

// Afterwards the system does not adapt the size of this socket's buffer any more.
void set_receive_buffer(int socket, std::size_t bytes);

}  // namespace sluice::transport
