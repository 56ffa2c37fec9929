#include "transport/tcp/tcp_liveness.h"

#include <linux/tcp.h>  // newer than that of libc
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>
#include <limits>

#include "transport/tcp/tcp_socket.h"

namespace sluice::transport {
namespace {

// The bytes of `info` that the system has written; older systems write fewer.
std::size_t read_info(int socket, tcp_info& info) {
  socklen_t bytes = sizeof info;
  return getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &bytes) == 0 ? bytes : 0;
}

}  // namespace

void watch_idle_host(int socket, std::chrono::milliseconds longest_silence) {
  constexpr int kProbes = 5;
  // A third of the time passes before the first probe.
  const auto seconds = static_cast<int>(longest_silence / std::chrono::seconds{1});
  const int idle = std::max(1, seconds / 3);
  set_option(socket, SOL_SOCKET, SO_KEEPALIVE, 1);
  set_option(socket, IPPROTO_TCP, TCP_KEEPIDLE, idle);
  set_option(socket, IPPROTO_TCP, TCP_KEEPINTVL, std::max(1, (seconds - idle) / kProbes));
  set_option(socket, IPPROTO_TCP, TCP_KEEPCNT, kProbes);
}

bool is_silent(int socket, std::chrono::milliseconds longest_silence) {
  constexpr int kRepeats = 2;  // a machine that was suspended has heard nothing either
  tcp_info info{};
  if (read_info(socket, info) < offsetof(tcp_info, tcpi_last_ack_recv) + sizeof(__u32))
    return false;
  return info.tcpi_unacked > 0 && info.tcpi_retransmits >= kRepeats &&
         std::chrono::milliseconds{info.tcpi_last_ack_recv} >= longest_silence;
}

std::uint64_t window_of_peer(int socket) {
  tcp_info info{};
  if (read_info(socket, info) < offsetof(tcp_info, tcpi_snd_wnd) + sizeof(__u32))
    return std::numeric_limits<std::uint64_t>::max();
  return info.tcpi_snd_wnd;
}

}  // namespace sluice::transport
