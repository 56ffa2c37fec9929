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
  // Of an address in digits, as "10.0.0.1" or "fe80::1%eth0"; none where it is a name.
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

  std::string host() const;  // in digits
  std::uint16_t port() const;
  SocketAddress with_port(std::uint16_t port) const;
  std::string text() const;  // "10.0.0.1:29501", "[::1]:29501"

  bool loopback() const;     // only this machine reaches it
  bool unspecified() const;  // 0.0.0.0 or ::
  bool link_local() const;   // of IPv6: means something only together with an interface

 private:
  sockaddr_storage storage_{};
};

// "10.0.0.1:29501", "[::1]:29501", "node-a:29501".
std::string show_address(const std::string& host, std::uint16_t port);

// All addresses of a name, the likeliest first. May block as long as the system's resolver does.
Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port);

// A socket that does not block and is not inherited; not open where errno says why.
base::Fd new_stream_socket(int family);

// Listens there, and there only; port 0 takes a free one. Not open where errno says why.
base::Fd listen_at(const SocketAddress& address);

void set_option(int socket, int level, int option, int value);
// No delay for short messages, keep-alive, and a congestion control that does not pause.
void set_mesh_options(int socket);

// The receive buffer bounds what a connection takes in before anybody reads it.
//
// A fast rank sends the next step's message while its peer still waits for another rank's last one.
// That message takes bandwidth from the awaited one, so the slow rank falls further behind; TCP's
// window would grow to megabytes. The buffer needs to hold only what keeps the link busy. A rank
// that receives from one peer only, as in a ring, is better off with TCP's own window: a thread
// that comes late to its core then finds more.

// The size for SO_RCVBUF, where the system grants at most `most`. 0: leave it to the system.
std::size_t receive_buffer_for(const Link& link, std::size_t most);

// What this system grants.
std::size_t most_receive_buffer();

// Final: the system no longer sizes this socket's buffer.
void set_receive_buffer(int socket, std::size_t bytes);

}  // namespace sluice::transport
