#include "transport/tcp/tcp_socket.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/tcp.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>

#include "base/format.h"
#include "base/text.h"

namespace sluice::transport {
namespace {

struct Found {
  int error = 0;
  std::vector<SocketAddress> addresses;
};

Found look_up(const std::string& host, std::uint16_t port, int flags) {
  addrinfo wanted{};
  wanted.ai_flags = flags | AI_NUMERICSERV;
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  addrinfo* first = nullptr;
  Found found;
  found.error = getaddrinfo(host.c_str(), std::to_string(port).c_str(), &wanted, &first);
  if (found.error != 0) return found;
  for (const addrinfo* entry = first; entry != nullptr; entry = entry->ai_next) {
    if (entry->ai_family == AF_INET || entry->ai_family == AF_INET6)
      found.addresses.push_back(SocketAddress::of(*entry->ai_addr));
  }
  freeaddrinfo(first);
  return found;
}

const sockaddr_in& as_v4(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in&>(storage);  // NOLINT: what sockaddr_storage is for
}
const sockaddr_in6& as_v6(const sockaddr_storage& storage) {
  return reinterpret_cast<const sockaddr_in6&>(storage);  // NOLINT: likewise
}

// Every 10 s BBR almost stops for 200 ms to measure the delay, and a collective would wait for each
// of its connections in turn. If BBR is the system's default, use another algorithm.
void avoid_bbr(int socket) {
  std::array<char, 16> name{};
  socklen_t bytes = name.size() - 1;
  if (getsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, name.data(), &bytes) != 0) return;
  if (!std::string_view{name.data()}.starts_with("bbr")) return;
  for (const std::string_view other : {"cubic", "reno"}) {
    const auto length = static_cast<socklen_t>(other.size());
    if (setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, other.data(), length) == 0) return;
  }
}

}  // namespace

std::optional<SocketAddress> SocketAddress::numeric(const std::string& host, std::uint16_t port) {
  const Found found = look_up(host, port, AI_NUMERICHOST);
  if (found.addresses.empty()) return std::nullopt;
  return found.addresses.front();
}

SocketAddress SocketAddress::of(const sockaddr& address) {
  SocketAddress copy;
  std::memcpy(&copy.storage_, &address,
              address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6));
  return copy;
}

SocketAddress SocketAddress::of_socket(int socket) {
  SocketAddress own;
  socklen_t bytes = sizeof own.storage_;
  getsockname(socket, reinterpret_cast<sockaddr*>(&own.storage_), &bytes);  // NOLINT
  return own;
}

SocketAddress SocketAddress::of_peer(int socket) {
  SocketAddress peer;
  socklen_t bytes = sizeof peer.storage_;
  getpeername(socket, reinterpret_cast<sockaddr*>(&peer.storage_), &bytes);  // NOLINT
  return peer;
}

socklen_t SocketAddress::bytes() const {
  return family() == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

std::string SocketAddress::host() const {
  std::array<char, NI_MAXHOST> text{};
  if (getnameinfo(address(), bytes(), text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) != 0)
    return "?";
  return text.data();
}

std::uint16_t SocketAddress::port() const {
  return ntohs(family() == AF_INET ? as_v4(storage_).sin_port : as_v6(storage_).sin6_port);
}

SocketAddress SocketAddress::with_port(std::uint16_t port) const {
  SocketAddress changed = *this;
  if (family() == AF_INET) {
    reinterpret_cast<sockaddr_in&>(changed.storage_).sin_port = htons(port);  // NOLINT
  } else {
    reinterpret_cast<sockaddr_in6&>(changed.storage_).sin6_port = htons(port);  // NOLINT
  }
  return changed;
}

std::string SocketAddress::text() const { return show_address(host(), port()); }

bool SocketAddress::loopback() const {
  if (family() == AF_INET) return ntohl(as_v4(storage_).sin_addr.s_addr) >> 24 == 127;
  return IN6_IS_ADDR_LOOPBACK(&as_v6(storage_).sin6_addr) != 0;
}

bool SocketAddress::unspecified() const {
  if (family() == AF_INET) return as_v4(storage_).sin_addr.s_addr == 0;
  return IN6_IS_ADDR_UNSPECIFIED(&as_v6(storage_).sin6_addr) != 0;
}

bool SocketAddress::link_local() const {
  return family() == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&as_v6(storage_).sin6_addr) != 0;
}

std::string show_address(const std::string& host, std::uint16_t port) {
  return host.find(':') == std::string::npos ? base::format("{}:{}", host, port)
                                             : base::format("[{}]:{}", host, port);
}

Result<std::vector<SocketAddress>> resolve(const std::string& host, std::uint16_t port) {
  Found found = look_up(host, port, 0);
  if (found.addresses.empty()) {
    const bool system = found.error == EAI_SYSTEM;
    return Status{Code::InvalidInput, base::format("{} has no address: {}", base::quote(host),
                                                   system             ? std::strerror(errno)
                                                   : found.error == 0 ? "neither IPv4 nor IPv6"
                                                                      : gai_strerror(found.error))};
  }
  return std::move(found.addresses);
}

base::Fd new_stream_socket(int family) {
  return base::Fd{socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
}

base::Fd listen_at(const SocketAddress& address) {
  constexpr int kBacklog = 1024;  // all ranks may connect at once
  base::Fd listener = new_stream_socket(address.family());
  if (!listener.open()) return listener;
  set_option(listener.number(), SOL_SOCKET, SO_REUSEADDR, 1);
  if (bind(listener.number(), address.address(), address.bytes()) != 0 ||
      listen(listener.number(), kBacklog) != 0) {
    const int error = errno;
    listener.reset();
    errno = error;
  }
  return listener;
}

void set_option(int socket, int level, int option, int value) {
  (void)setsockopt(socket, level, option, &value, sizeof value);
}

void set_mesh_options(int socket) {
  set_option(socket, IPPROTO_TCP, TCP_NODELAY, 1);
  avoid_bbr(socket);
}

std::size_t receive_buffer_for(const Link& link, std::size_t most) {
  constexpr double kLeastBytes = 64 * 1024;
  constexpr double kLeastSeconds = 1e-3;  // covers a queue on the path and a late thread
  constexpr double kLatencies = 8;        // four round trips
  const double seconds = std::max(kLeastSeconds, kLatencies * link.latency_s);
  const double bytes = std::max(kLeastBytes, seconds * link.bandwidth_bytes_per_s);
  return bytes <= static_cast<double>(most) ? static_cast<std::size_t>(bytes) : 0;
}

std::size_t most_receive_buffer() {
  std::size_t most = 0;
  std::ifstream{"/proc/sys/net/core/rmem_max"} >> most;
  return most;
}

void set_receive_buffer(int socket, std::size_t bytes) {
  set_option(socket, SOL_SOCKET, SO_RCVBUF, static_cast<int>(bytes));
}

}  // namespace sluice::transport
