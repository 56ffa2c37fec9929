// stream_contender.cc - the bandwidth of the network: each rank sends to the next rank and receives
// from the previous one, over plain TCP connections, as many bytes as a ring all-reduce.
//
// EXTRA is "PORT ADDRESS ADDRESS ...": the addresses of the ranks' hosts, in rank order. Rank r
// listens at PORT + r.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/file.h"
#include "base/format.h"
#include "bench/allreduce/contender.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kConnectLimit{30};
constexpr std::size_t kMostAtOnce = std::size_t{1} << 20;

sockaddr_in socket_address(const std::string& address, int port) {
  sockaddr_in there{};
  there.sin_family = AF_INET;
  there.sin_port = htons(static_cast<std::uint16_t>(port));
  if (inet_pton(AF_INET, address.c_str(), &there.sin_addr) != 1)
    throw std::runtime_error{base::format("{} is not an address", address)};
  return there;
}

base::Fd tcp_socket() { return base::Fd{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)}; }

base::Fd connect_to(const sockaddr_in& there) {
  for (const auto limit = Clock::now() + kConnectLimit; Clock::now() < limit;) {
    base::Fd fd = tcp_socket();
    if (connect(fd.number(), reinterpret_cast<const sockaddr*>(&there), sizeof there) == 0)
      return fd;
    std::this_thread::sleep_for(std::chrono::milliseconds{10});
  }
  throw std::runtime_error{"cannot connect to the next rank"};
}

class StreamContender : public Contender {
 public:
  explicit StreamContender(const WorkerArguments& arguments)
      : rank_{arguments.rank}, ranks_{arguments.ranks}, sent_(kMostAtOnce), received_(kMostAtOnce) {
    std::istringstream words{arguments.extra};
    int port = 0;
    words >> port;
    std::vector<std::string> addresses(static_cast<std::size_t>(ranks_));
    for (std::string& address : addresses) words >> address;
    const base::Fd listener = tcp_socket();
    const int on = 1;
    setsockopt(listener.number(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in here =
        socket_address(addresses[static_cast<std::size_t>(rank_)], port + rank_);
    if (bind(listener.number(), reinterpret_cast<const sockaddr*>(&here), sizeof here) != 0 ||
        listen(listener.number(), 1) != 0)
      throw std::runtime_error{base::format("cannot listen at port {}", port + rank_)};
    const int next = (rank_ + 1) % ranks_;
    next_ = connect_to(socket_address(addresses[static_cast<std::size_t>(next)], port + next));
    before_ = base::Fd{accept4(listener.number(), nullptr, nullptr, SOCK_CLOEXEC)};
    for (const int fd : {next_.number(), before_.number()}) {
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      fcntl(fd, F_SETFL, O_NONBLOCK);
    }
  }

  int ranks() const override { return ranks_; }
  bool supports(DataType /*type*/) const override { return true; }
  bool reduces() const override { return false; }
  std::vector<RankBuffer> allocate(std::size_t /*bytes*/) override {
    return {{rank_, sent_.data()}};
  }
  void release() override {}

  // n exchanges round the ring carry a message from each rank to all others.
  void barrier() override {
    for (int i = 0; i < ranks_; ++i) exchange(1);
  }

  void all_reduce(DataType type, std::size_t count, int times) override {
    const auto ranks = static_cast<std::size_t>(ranks_);
    const std::size_t bytes = 2 * (ranks - 1) * count * size_of(type) / ranks;
    for (int i = 0; i < times; ++i) exchange(std::max<std::size_t>(bytes, 1));
  }

 private:
  // Sends and receives `bytes` bytes. All of them use the same memory, which stays in the cache, so
  // the network sets the rate.
  void exchange(std::size_t bytes) {
    std::size_t out = bytes;
    std::size_t in = bytes;
    while (out + in > 0) {
      const bool moved_out = out > 0 && took(out, send(next_.number(), sent_.data(),
                                                       std::min(out, kMostAtOnce), MSG_NOSIGNAL));
      const bool moved_in = in > 0 && took(in, recv(before_.number(), received_.data(),
                                                    std::min(in, kMostAtOnce), 0));
      if (moved_out || moved_in) continue;
      std::array<pollfd, 2> ready{{{out > 0 ? next_.number() : -1, POLLOUT, 0},
                                   {in > 0 ? before_.number() : -1, POLLIN, 0}}};
      poll(ready.data(), ready.size(), -1);
    }
  }

  static bool took(std::size_t& left, ssize_t moved) {
    if (moved > 0) {
      left -= static_cast<std::size_t>(moved);
      return true;
    }
    if (moved < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    throw std::runtime_error{"a neighbour closed its connection"};
  }

  Rank rank_;
  int ranks_;
  std::vector<char> sent_;
  std::vector<char> received_;
  base::Fd next_;
  base::Fd before_;
};

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  return contender_main(argc, argv, [](const WorkerArguments& arguments) {
    return std::make_unique<StreamContender>(arguments);
  });
}
