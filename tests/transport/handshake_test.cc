#include "transport/handshake.h"

#include <gtest/gtest.h>

#include "transport/tcp/tcp_socket.h"

namespace sluice::transport {
namespace {

using namespace std::chrono_literals;

TEST(Handshake, ShowsManyRanksAsRanges) {
  EXPECT_EQ(show_ranks({3}), "rank 3");
  EXPECT_EQ(show_ranks({5, 6, 7}), "ranks 5, 6, 7");
  EXPECT_EQ(show_ranks({1, 5, 6, 7, 8, 9, 10, 11, 12}), "ranks 1, 5-12");
  std::vector<Rank> odd;
  for (Rank rank = 1; rank < 100; rank += 2) odd.push_back(rank);
  EXPECT_EQ(show_ranks(odd), "ranks 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23 and 38 more");
}

TEST(Handshake, RefusesAClaimThatDoesNotFitTheJob) {
  EXPECT_EQ(reason_to_refuse({1, 3}, 3), "");
  EXPECT_EQ(reason_to_refuse({1, 4}, 3), "it counts 4 ranks, not 3");
  EXPECT_EQ(reason_to_refuse({3, 3}, 3), "rank 3 is not one of 3 ranks");
  EXPECT_EQ(reason_to_refuse({-1, 3}, 3), "rank -1 is not one of 3 ranks");
}

struct Connection {
  base::Fd socket;
  int fd() const { return socket.number(); }
};

// The numbers of bytes that each pending connection has received.
std::vector<ssize_t> received(PendingConnections<Connection>& pending) {
  std::vector<ssize_t> all;
  pending.read_all([&](Connection& connection) {
    char bytes[16];
    all.push_back(recv(connection.fd(), bytes, sizeof bytes, MSG_DONTWAIT));
    return false;
  });
  return all;
}

class Pending : public testing::Test {
 protected:
  base::Fd connect_and_send(std::size_t bytes) {
    const auto address = SocketAddress::of_socket(listener_.number());
    base::Fd client{socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    EXPECT_EQ(connect(client.number(), address.address(), address.bytes()), 0);
    EXPECT_EQ(send(client.number(), "12345678", bytes, 0), static_cast<ssize_t>(bytes));
    return client;
  }
  static Status accept_into(PendingConnections<Connection>& pending, const base::Fd& listener) {
    return pending.accept_all(listener, "rank 0",
                              [](base::Fd socket) { return Connection{std::move(socket)}; });
  }

  base::Fd listener_ = listen_at(*SocketAddress::numeric("127.0.0.1", 0));
};

TEST_F(Pending, TheOldestConnectionIsClosedWhenThereAreTooMany) {
  PendingConnections<Connection> pending{2, 1h};
  const base::Fd one = connect_and_send(1);
  const base::Fd two = connect_and_send(2);
  const base::Fd three = connect_and_send(3);
  ASSERT_TRUE(accept_into(pending, listener_).ok());
  EXPECT_EQ(received(pending), (std::vector<ssize_t>{2, 3}));
  char byte = 0;
  EXPECT_LE(recv(one.number(), &byte, 1, 0), 0) << "closed or reset";
}

TEST_F(Pending, AConnectionIsClosedAfterItsTime) {
  PendingConnections<Connection> pending{2, 0s};
  const base::Fd one = connect_and_send(1);
  ASSERT_TRUE(accept_into(pending, listener_).ok());
  EXPECT_EQ(received(pending), std::vector<ssize_t>{1});
  EXPECT_TRUE(received(pending).empty());
}

}  // namespace
}  // namespace sluice::transport
