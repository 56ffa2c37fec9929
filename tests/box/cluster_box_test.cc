#include "tests/box/cluster_box.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

namespace sluice::box {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
constexpr std::uint16_t kPort = 7000;
constexpr unsigned kLongest = 30;  // seconds, for any process of a test

sockaddr_in at(const std::string& address) {
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(kPort);
  inet_pton(AF_INET, address.c_str(), &place.sin_addr);
  return place;
}

int connect_to(const std::string& address, std::chrono::milliseconds patience) {
  const sockaddr_in place = at(address);
  for (const auto until = Clock::now() + patience; Clock::now() < until;) {
    const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const timeval wait{0, 200'000};
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    if (connect(socket, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0)
      return socket;
    close(socket);
    std::this_thread::sleep_for(20ms);
  }
  return -1;
}

int send_bytes(const std::string& address, std::size_t bytes) {
  alarm(kLongest);
  const int socket = connect_to(address, 5s);
  const std::vector<char> data(1 << 16, 'x');
  while (socket >= 0 && bytes > 0) {
    const ssize_t sent = write(socket, data.data(), std::min(bytes, data.size()));
    if (sent <= 0) return 1;
    bytes -= static_cast<std::size_t>(sent);
  }
  return socket >= 0 ? 0 : 1;
}

// Receives `first` bytes, and returns the seconds that `timed` more bytes take; 0: they did not
// arrive.
double receive_bytes(const std::string& address, std::size_t first, std::size_t timed) {
  alarm(kLongest);
  const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const sockaddr_in place = at(address);
  if (bind(listener, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0) return 0;
  listen(listener, 1);
  const int socket = accept(listener, nullptr, nullptr);
  std::vector<char> data(1 << 16);
  const auto take = [&](std::size_t bytes) {
    while (bytes > 0) {
      const ssize_t got = read(socket, data.data(), std::min(bytes, data.size()));
      if (got <= 0) return false;
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  };
  if (!take(first)) return 0;
  const auto begin = Clock::now();
  if (!take(timed)) return 0;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The rate of payload from one host to another, after TCP's start.
double one_stream_mbit_per_s(const ClusterBox& box, int from, int to, std::size_t timed) {
  constexpr std::size_t kFirst = 2 << 20;
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return 0;
  const pid_t receiver = box.start(to, [&] {
    const double seconds = receive_bytes(box.address(to), kFirst, timed);
    return write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1;
  });
  const pid_t sender = box.start(from, [&] { return send_bytes(box.address(to), kFirst + timed); });
  close(ends[1]);
  double seconds = 0;
  (void)!read(ends[0], &seconds, sizeof seconds);
  close(ends[0]);
  waitpid(receiver, nullptr, 0);
  waitpid(sender, nullptr, 0);
  return seconds > 0 ? static_cast<double>(timed) * 8 / seconds / 1e6 : 0;
}

// A reader that is scheduled late finds data that has already arrived, and then reads faster than
// the link.
constexpr double kLateReaderFactor = 1.1;

// The best rate of several streams, because a busy machine can make a stream slower.
double stream_mbit_per_s(const ClusterBox& box, int from, int to, std::size_t timed) {
  constexpr int kTries = 3;
  double best = 0;
  for (int i = 0; i < kTries; ++i)
    best = std::max(best, one_stream_mbit_per_s(box, from, to, timed));
  return best;
}

#define MAKE_BOX(name, ...)                                              \
  Result<ClusterBox> made = ClusterBox::make(BoxOptions{__VA_ARGS__});   \
  if (!made.ok()) GTEST_SKIP() << "no box: " << made.status().message(); \
  ClusterBox& name = made.value()

TEST(ClusterBox, AStreamHasTheRateOfItsLinkAndIsCounted) {
  MAKE_BOX(box, .hosts = 3, .mbit_per_s = 200);
  constexpr std::size_t kBytes = 10 << 20;
  const LinkCounters before = box.counters(2);
  const LinkCounters idle_before = box.counters(1);
  (void)one_stream_mbit_per_s(box, 2, 0, kBytes);
  // A large segment is counted with one header, so headers are at most 66 bytes for every 1,448.
  const auto sent = static_cast<double>(box.counters(2).sent_bytes - before.sent_bytes);
  constexpr double kPayload = kBytes + (2 << 20);
  EXPECT_GE(sent, kPayload);
  EXPECT_LE(sent, kPayload * (1 + 66.0 / 1448) * 1.01);
  EXPECT_LT(box.counters(1).sent_bytes - idle_before.sent_bytes, 10'000U)
      << "this host sent nothing";

  const double rate = stream_mbit_per_s(box, 2, 0, kBytes);
  EXPECT_GT(rate, 200 * 0.90);
  EXPECT_LT(rate, 200 * kLateReaderFactor);
}

TEST(ClusterBox, AFastLinkHasABucketThatFits) {
  MAKE_BOX(box, .hosts = 2, .mbit_per_s = 4'000);
  const double rate = stream_mbit_per_s(box, 0, 1, std::size_t{200} << 20);
  EXPECT_GT(rate, 4'000 * 0.5) << "on a busy machine";
  EXPECT_LT(rate, 4'000 * kLateReaderFactor);
}

TEST(ClusterBox, ALinkWithoutLimitIsFasterThanTheSameLinkWithOne) {
  MAKE_BOX(box, .hosts = 2, .mbit_per_s = 0);
  const double unlimited = stream_mbit_per_s(box, 0, 1, std::size_t{100} << 20);
  for (int host = 0; host < 2; ++host) ASSERT_TRUE(box.set_rate(host, 500).ok());
  const double limited = stream_mbit_per_s(box, 0, 1, std::size_t{20} << 20);
  EXPECT_LT(limited, 500 * kLateReaderFactor);
  EXPECT_GT(unlimited, 2 * limited);
  for (int host = 0; host < 2; ++host) ASSERT_TRUE(box.set_rate(host, 0).ok());
  EXPECT_GT(stream_mbit_per_s(box, 0, 1, std::size_t{100} << 20), 2 * limited);
}

TEST(ClusterBox, GroupsShareTheirUplink) {
  MAKE_BOX(box, .hosts = 4, .mbit_per_s = 200, .groups = {2, 2}, .uplink_mbit_per_s = 50);
  const double within = stream_mbit_per_s(box, 0, 1, 6 << 20);
  const double across = stream_mbit_per_s(box, 0, 2, 2 << 20);
  EXPECT_GT(within, 200 * 0.90);
  EXPECT_GT(across, 50 * 0.88);
  EXPECT_LT(across, 50 * kLateReaderFactor);
}

TEST(ClusterBox, ACutLinkCarriesNothingUntilItIsMended) {
  MAKE_BOX(box, .hosts = 2, .mbit_per_s = 200);
  const auto reaches = [&] {
    const pid_t server = box.start(0, [&] {
      alarm(kLongest);
      return receive_bytes(box.address(0), 1, 0) >= 0 ? 0 : 1;
    });
    const pid_t client = box.start(1, [&] { return connect_to(box.address(0), 1s) >= 0 ? 0 : 1; });
    int status = -1;
    waitpid(client, &status, 0);
    kill(server, SIGKILL);
    waitpid(server, nullptr, 0);
    return status == 0;
  };
  EXPECT_TRUE(reaches());
  ASSERT_TRUE(box.cut(1).ok());
  EXPECT_FALSE(reaches());
  ASSERT_TRUE(box.mend(1).ok());
  EXPECT_TRUE(reaches());
}

TEST(ClusterBox, LeavesNothingBehind) {
  const auto left = [] {
    int count = 0;
    const std::string mine = "sluice-" + std::to_string(getpid()) + "-";
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator{"/var/run/netns", none})
      count += entry.path().filename().string().starts_with(mine) ? 1 : 0;
    return count;
  };
  pid_t forgotten = 0;
  {
    MAKE_BOX(box, .hosts = 2);
    EXPECT_EQ(left(), 3) << "two hosts and a switch";
    forgotten = box.start(0, [] {
      std::this_thread::sleep_for(60s);
      return 0;
    });
  }
  EXPECT_EQ(left(), 0);
  int status = 0;
  waitpid(forgotten, &status, 0);
  EXPECT_TRUE(WIFSIGNALED(status)) << "a process of the box ends with it";
}

TEST(ClusterBox, DisappearsWhenItsProcessIsKilled) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  const pid_t child = fork();
  if (child == 0) {
    alarm(kLongest);
    const auto made = ClusterBox::make({.hosts = 2});
    const std::string name = made.ok() ? made.value().host_name(0) : "";
    if (write(ends[1], name.c_str(), name.size() + 1) > 0) pause();
    _exit(1);
  }
  std::array<char, 100> name{};
  close(ends[1]);
  ASSERT_GT(read(ends[0], name.data(), name.size()), 0);
  close(ends[0]);
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  if (name[0] == '\0') GTEST_SKIP() << "no box is possible here";
  const std::filesystem::path place = std::filesystem::path{"/var/run/netns"} / name.data();
  for (const auto until = Clock::now() + 10s; exists(place) && Clock::now() < until;)
    std::this_thread::sleep_for(20ms);
  EXPECT_FALSE(exists(place));
}

}  // namespace
}  // namespace sluice::box
