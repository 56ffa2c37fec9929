#include "transport/tcp/tcp_socket.h"

#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <chrono>
#include <thread>
#include <vector>

#include "base/file.h"

namespace sluice::transport {
namespace {

constexpr std::size_t kMost = 212'992;  // the value of most systems

Link link_of(double gbit_per_s, double latency_us) {
  return {.latency_s = latency_us * 1e-6, .bandwidth_bytes_per_s = gbit_per_s * 1e9 / 8};
}

TEST(ReceiveBuffer, HoldsAMillisecondOfTheLink) {
  EXPECT_EQ(receive_buffer_for(link_of(1, 10), kMost), 125'000U);
  EXPECT_EQ(receive_buffer_for(link_of(1, 150), kMost), 150'000U)
      << "8 latencies are longer than 1 ms";
  EXPECT_EQ(receive_buffer_for(link_of(0.1, 10), kMost), 65'536U) << "the smallest size";
}

TEST(ReceiveBuffer, IsLeftToTheSystemWhenTheSystemAllowsTooLittle) {
  EXPECT_EQ(receive_buffer_for(link_of(10, 10), kMost), 0U);
  EXPECT_EQ(receive_buffer_for(link_of(0.1, 10'000), kMost), 0U) << "a link between cities";
  EXPECT_EQ(receive_buffer_for(link_of(10, 10), 16U << 20U), 1'250'000U);
  EXPECT_EQ(receive_buffer_for(link_of(0.1, 10), 0), 0U) << "the limit is unknown";
}

struct Connection {
  base::Fd sender;
  base::Fd receiver;

  Connection() {
    const base::Fd listener = listen_at(*SocketAddress::numeric("127.0.0.1", 0));
    const SocketAddress to = SocketAddress::of_socket(listener.number());
    sender = base::Fd{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (connect(sender.number(), to.address(), to.bytes()) == 0)
      receiver = base::Fd{accept(listener.number(), nullptr, nullptr)};
  }

  // Sends a message that is read while it arrives.
  void transfer(std::size_t bytes) {
    std::vector<char> data(1U << 16U);
    std::thread reader{[&] {
      std::vector<char> into(1U << 20U);
      for (std::size_t got = 0; got < bytes;) {
        const ssize_t part = recv(receiver.number(), into.data(), into.size(), 0);
        if (part <= 0) return;
        got += static_cast<std::size_t>(part);
      }
    }};
    for (std::size_t sent = 0; sent < bytes; sent += data.size())
      EXPECT_EQ(send(sender.number(), data.data(), data.size(), MSG_NOSIGNAL),
                static_cast<ssize_t>(data.size()));
    reader.join();
  }

  // Sends a message that nobody reads, and returns the bytes that the receiver's kernel takes in.
  std::size_t bytes_taken_unread() {
    std::vector<char> data(8U << 20U);
    std::size_t before = 0;
    for (int unchanged = 0; unchanged < 20; ++unchanged) {
      (void)!send(sender.number(), data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
      int here = 0;
      EXPECT_EQ(ioctl(receiver.number(), FIONREAD, &here), 0);
      if (static_cast<std::size_t>(here) > before) unchanged = 0;
      before = static_cast<std::size_t>(here);
    }
    return before;
  }
};

TEST(ReceiveBuffer, BoundsUnreadData) {
  constexpr std::size_t kBytes = 65'536;
  constexpr std::size_t kEnoughToGrow = 64U << 20U;
  Connection bounded;
  ASSERT_TRUE(bounded.receiver.open());
  set_receive_buffer(bounded.receiver.number(), kBytes);
  bounded.transfer(kEnoughToGrow);
  EXPECT_LE(bounded.bytes_taken_unread(), 2 * kBytes);

  Connection free;
  ASSERT_TRUE(free.receiver.open());
  free.transfer(kEnoughToGrow);
  EXPECT_GT(free.bytes_taken_unread(), 4 * kBytes) << "without the bound";
}

}  // namespace
}  // namespace sluice::transport
