#include "transport/tcp/tcp_window.h"

#include <sys/socket.h>

#include <algorithm>
#include <fstream>

namespace sluice::transport {

std::size_t receive_buffer_for(const Link& link, std::size_t most) {
  constexpr double kLeastBytes = 64 * 1024;
  constexpr double kLeastSeconds = 1e-3;  // a queue on the way, a core that comes to it late
  constexpr double kLatencies = 8;        // four times there and back
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
  const int value = static_cast<int>(bytes);
  (void)setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &value, sizeof value);
}

}  // namespace sluice::transport
