// A host falls silent: its link is cut, so no reset and no end of file arrives from it.
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "tests/base/has.h"
#include "tests/box/cluster_box.h"
#include "transport/tcp/tcp.h"
#include "transport/tcp/tcp_socket.h"

namespace sluice::box {
namespace {

using namespace std::chrono_literals;
using transport::Clock;
constexpr std::uint16_t kFirstPort = 7100;
constexpr auto kSilence = 1s;
constexpr unsigned kLongest = 60;  // seconds, for any process of a test

std::unique_ptr<transport::Network> join(const ClusterBox& cluster, Rank rank) {
  transport::TcpOptions options{.rank = rank,
                                .own_address = cluster.address(rank),
                                .token = "secret",
                                .wake_descriptor = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                                .deadline = Clock::now() + 20s,
                                .longest_silence = kSilence};
  for (Rank each = 0; each < 2; ++each) {
    const auto port = static_cast<std::uint16_t>(kFirstPort + each);
    options.addresses.push_back({cluster.address(each), each == rank ? std::uint16_t{0} : port});
    if (each == rank)
      options.listener =
          transport::listen_at(*transport::SocketAddress::numeric(cluster.address(each), port));
  }
  return transport::make_tcp_network(std::move(options)).value();
}

class Silence : public testing::Test {
 protected:
  void SetUp() override {
    auto made = ClusterBox::make({.hosts = 2});
    if (!made.ok()) GTEST_SKIP() << made.status().message();
    cluster_ = std::make_unique<ClusterBox>(std::move(made).value());
  }

  // Rank 0 does `before`, then the link of rank 1's host is cut, and rank 0 goes on as a rank that
  // waits. Returns the seconds until it knows that rank 1 is lost; 0: it does not learn it.
  int seconds_until_lost(const std::function<void(transport::Network&)>& before) {
    const pid_t silent = cluster_->start(1, [&] {
      alarm(kLongest);
      const auto network = join(*cluster_, 1);
      std::this_thread::sleep_for(std::chrono::seconds{kLongest});
      return 0;
    });
    const pid_t survivor = cluster_->start(0, [&] {
      alarm(kLongest);
      const auto network = join(*cluster_, 0);
      before(*network);
      if (!cluster_->cut(1).ok() || !network->death_of(1).empty()) return 100;
      const auto begin = Clock::now();
      while (Clock::now() < begin + 30s) {
        network->send_status(1, {.entered = 1});
        if (base::has(network->death_of(1), "it cannot be reached"))
          return static_cast<int>((Clock::now() - begin) / 1s) + 1;
        std::this_thread::sleep_for(100ms);
      }
      return 0;
    });
    int status = 0;
    waitpid(survivor, &status, 0);
    kill(silent, SIGKILL);
    waitpid(silent, nullptr, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  std::unique_ptr<ClusterBox> cluster_;
};

TEST_F(Silence, OfAnIdleHostIsNoticed) {
  const int seconds = seconds_until_lost([](transport::Network&) {});
  EXPECT_GE(seconds, 1);
  EXPECT_LE(seconds, 10);
}

TEST_F(Silence, OfAHostWhoseWindowIsFullIsNoticed) {
  std::vector<std::byte> data(std::size_t{64} << 20U);
  const int seconds = seconds_until_lost([&](transport::Network& network) {
    network.send(1, {.bytes = data.size()}, data.data());
    for (const auto until = Clock::now() + 3s; Clock::now() < until;) {
      (void)network.sent(1);
      network.send_status(1, {.entered = 1});
      std::this_thread::sleep_for(20ms);
    }
  });
  EXPECT_GE(seconds, 1);
  EXPECT_LE(seconds, 10);
}

}  // namespace
}  // namespace sluice::box
